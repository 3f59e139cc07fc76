import { flag, list, optionalText, wholeNumber } from "./settings.ts";

/** Settings of HTTPS and certificates. */
export const httpsSettings = {
  edgeTlsPort: wholeNumber(
    "BERTH_EDGE_TLS_PORT",
    8443,
    [0, 65_535],
    "The port for HTTPS of applications and of the control plane; used once certificates are ordered or given.",
  ),
  acmeDirectory: optionalText(
    "BERTH_ACME_DIRECTORY",
    "Orders certificates from this authority: `letsencrypt`, `letsencrypt-staging`, or the URL of an ACME directory. When unset, Berth orders none.",
  ),
  acmeEmail: optionalText("BERTH_ACME_EMAIL", "The e-mail address to which the authority writes about the account."),
  acmeCaFile: optionalText(
    "BERTH_ACME_CA_FILE",
    "The CA that signed the directory's own certificate, if that is not a public CA.",
  ),
  acmeAccountId: optionalText(
    "BERTH_ACME_EAB_ID",
    "Key identifier of an external account, where the authority requires one.",
  ),
  acmeAccountKey: optionalText("BERTH_ACME_EAB_KEY", "HMAC key of the external account, in base64url."),
  acmeHttpPort: wholeNumber(
    "BERTH_ACME_HTTP_PORT",
    80,
    [1, 65_535],
    "The public port at which the authority requests challenges; only test authorities use another port than 80.",
  ),
  acmeProbe: flag(
    "BERTH_ACME_PROBE",
    true,
    "Request each name over HTTP before a certificate is ordered; switch it off where the machine cannot reach its own public address.",
  ),
  acmeWeeklyFirsts: wholeNumber(
    "BERTH_ACME_WEEKLY_LIMIT",
    40,
    [1, 100_000],
    "How many new certificates Berth orders in seven days for names below one registered domain. Let's Encrypt issues 50; renewals do not count.",
  ),
  dnsUpdateServer: optionalText(
    "BERTH_DNS_UPDATE_SERVER",
    "The primary DNS server of the zone that holds `BERTH_DOMAIN`, such as `192.0.2.1` or `192.0.2.1:5353`: Berth orders one certificate for `*.<BERTH_DOMAIN>` and publishes the proof there by signed updates (RFC 2136).",
  ),
  dnsUpdateKeyFile: optionalText(
    "BERTH_DNS_UPDATE_KEY_FILE",
    "The TSIG key that signs the updates to BERTH_DNS_UPDATE_SERVER, as `tsig-keygen` writes it. Only Berth's user may read the file.",
  ),
  dnsUpdateWaitSeconds: wholeNumber(
    "BERTH_DNS_UPDATE_WAIT_SECONDS",
    5,
    [0, 3600],
    "How long the zone's other DNS servers may take to copy a record.",
  ),
  certificateFiles: list(
    "BERTH_CERTIFICATE_FILES",
    () => undefined,
    "PEM files, each with a certificate, its issuers and the private key: Berth serves them for the names in them instead of ordering certificates, and reads them again when they change.",
  ),
  hsts: flag("BERTH_HSTS", false, "Send `Strict-Transport-Security` with every answer over HTTPS."),
};
