// shoal-client: the volunteer's daemon without a screen, and its command line.

#include "client/client.h"

int main(int argc, char** argv) { return shoal::client::run_command_line(argc, argv); }
