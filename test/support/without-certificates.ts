import { HttpsNames } from "../../src/features/certificates/certificates.ts";
import type { Platform } from "../../src/reconcile/platform.ts";

/** What a platform's edge is given where nothing is about certificates. */
export function withoutCertificates(): Pick<Platform, "certificates" | "httpsNames"> {
  const none = { directory: null, control: null, controlHost: null, appsDomain: null };
  return {
    certificates: { ...none, httpPort: 80, probe: true, hsts: false, own: () => [] },
    httpsNames: new HttpsNames(),
  };
}
