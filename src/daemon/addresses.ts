import type { Addresses } from "../features/context.ts";
import type { Config } from "./config.ts";

/** How users reach applications and git. Ports that are the protocol's own are left out of URLs. */
export function addressesOf(config: Config): Addresses {
  const withPort = (port: number, usual: number) => (port === usual ? "" : `:${port}`);
  return {
    appsDomain: config.domain,
    appUrl: (hostname) => `http://${hostname}${withPort(config.edgePort, 80)}`,
    gitSsh: (org, slug) => `ssh://git@${config.host}${withPort(config.sshPort, 22)}/${org}/${slug}.git`,
    gitHttp: (org, slug) => `http://${config.host}${withPort(config.httpPort, 80)}/git/${org}/${slug}.git`,
  };
}
