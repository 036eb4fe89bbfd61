#pragma once
// A generate call: checks the request, runs its session, and carries tokens to the caller's sink.

#include "coordinator/rpc/parts.h"
#include "schema/admin.capnp.h"

namespace shoal {

// `parts` outlives the promise. Dropping it ends the session.
kj::Promise<void> run_generation(
    Parts& parts,
    capnp::CallContext<rpc::Admin::GenerateParams, rpc::Admin::GenerateResults> context);

// What a session would be now, and why. Fails as a session would at its beginning.
void plan_generation(
    Parts& parts,
    capnp::CallContext<rpc::Admin::PlanSessionParams, rpc::Admin::PlanSessionResults> context);

void write_figures(rpc::SessionFigures::Builder out, const SessionFigures& figures);
void write_stages(capnp::List<rpc::StageInfo>::Builder out, std::span<const StageWho> stages);

}  // namespace shoal
