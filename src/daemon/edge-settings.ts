import { isIP } from "node:net";
import { list, optionalText, wholeNumber } from "./settings.ts";

/** Settings of the edge: which HAProxy carries the traffic, the limit of bodies, and which proxies it trusts. */
export const edgeSettings = {
  haproxy: optionalText(
    "BERTH_HAPROXY",
    "The HAProxy (2.6 or later) that carries the traffic to applications; default: the machine's, else one that Berth fetches into its data folder.",
  ),
  edge: optionalText("BERTH_EDGE", "No effect: HAProxy is the only edge. Accepted until Berth 2.0."),
  maxBodyMib: wholeNumber(
    "BERTH_MAX_BODY_MIB",
    1024,
    [0, 1024 * 1024],
    "The largest body of a request to an application; a larger one is answered with 413. 0: no limit.",
  ),
  trustedProxies: list(
    "BERTH_TRUSTED_PROXIES",
    (value) => (isIP(value.replace(/\/\d{1,3}$/, "")) > 0 ? undefined : "is not an IP address or network"),
    "The addresses of proxies in front of HAProxy, such as `192.0.2.1` or `192.0.2.0/24`, whose X-Forwarded-For and X-Forwarded-Proto HAProxy trusts.",
  ),
};
