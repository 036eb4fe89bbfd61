#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>

#include "base/digest.h"
#include "schema/transport.h"

namespace shoal::rpc {
namespace {

template <auto Free>
struct Freed {
  template <class T>
  void operator()(T* object) const {
    Free(object);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freed<EVP_PKEY_free>>;
using X509Certificate = std::unique_ptr<X509, Freed<X509_free>>;
using Bio = std::unique_ptr<BIO, Freed<BIO_free_all>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freed<X509_EXTENSION_free>>;

Error failed(const char* what) {
  return Error{ErrorCode::kIo, std::string("certificate: OpenSSL could not ") + what};
}

bool add_extension(X509* certificate, int nid, const char* value) {
  const Extension extension(X509V3_EXT_conf_nid(nullptr, nullptr, nid, value));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

}  // namespace

Result<Certificate> make_certificate() {
  const Key key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  if (!key) return failed("make an Ed25519 key");

  // The validity is wide on purpose: the pin, not a date, decides; a volunteer's clock may be
  // wrong.
  const X509Certificate certificate(X509_new());
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
  ASN1_TIME_set_string(X509_getm_notBefore(certificate.get()), "20000101000000Z");
  ASN1_TIME_set_string(X509_getm_notAfter(certificate.get()), "99991231235959Z");
  X509_set_version(certificate.get(), X509_VERSION_3);
  X509_NAME* name = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>("shoal"), -1, -1, 0);
  X509_set_issuer_name(certificate.get(), name);
  if (X509_set_pubkey(certificate.get(), key.get()) != 1 ||
      !add_extension(certificate.get(), NID_subject_alt_name, "DNS:shoal") ||
      !add_extension(certificate.get(), NID_basic_constraints, "critical,CA:TRUE") ||
      X509_sign(certificate.get(), key.get(), nullptr) == 0) {
    return failed("sign the certificate");
  }

  Certificate made;
  unsigned char* der = nullptr;
  const int size = i2d_X509(certificate.get(), &der);
  if (size <= 0) return failed("write the certificate");
  const auto* bytes = reinterpret_cast<const std::byte*>(der);
  made.der.assign(bytes, bytes + size);
  OPENSSL_free(der);

  const Bio pem(BIO_new(BIO_s_mem()));
  if (!pem ||
      PEM_write_bio_PrivateKey(pem.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1) {
    return failed("write the private key");
  }
  char* text = nullptr;
  const long text_size = BIO_get_mem_data(pem.get(), &text);
  made.private_key_pem.assign(text, size_t(text_size));
  return made;
}

std::string pin_of(ByteSpan certificate_der) {
  return base64url_encode(digest_of(certificate_der).bytes);
}

}  // namespace shoal::rpc
