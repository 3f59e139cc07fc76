import { isIP } from "node:net";
import { list, optionalChoice, wholeNumber } from "./settings.ts";

/** Settings of the edge: which kind carries the traffic, and which proxies it trusts. */
export const edgeSettings = {
  edge: optionalChoice(
    "BERTH_EDGE",
    ["haproxy", "builtin"],
    "What receives the traffic to applications. Default: HAProxy where it is installed (2.6 or later) and Berth runs as root, else the built-in edge.",
  ),
  maxBodyMib: wholeNumber(
    "BERTH_MAX_BODY_MIB",
    1024,
    [0, 1024 * 1024],
    "The largest body of a request to an application; a larger one is answered with 413. 0: no limit. HAProxy does not limit a body that comes without its length.",
  ),
  trustedProxies: list(
    "BERTH_TRUSTED_PROXIES",
    (value) => (isIP(value.replace(/\/\d{1,3}$/, "")) > 0 ? undefined : "is not an IP address or network"),
    "The addresses of proxies in front of HAProxy, such as `192.0.2.1` or `192.0.2.0/24`, whose X-Forwarded-For and X-Forwarded-Proto HAProxy trusts.",
  ),
};
