import { isIP } from "node:net";

/** Microsoft's issuers for accounts of every company (https://learn.microsoft.com/entra/identity-platform/v2-protocols-oidc). */
const ofAllTenants = /^\/(?:common|organizations|consumers)(?:\/|$)|[{}]|%7[bd]/i;

/** Returns why people cannot sign in with this issuer, or undefined. */
export function issuerProblem(issuer: string): string | undefined {
  const { protocol, hostname, pathname, search, hash, username } = new URL(issuer);
  if (search !== "" || hash !== "" || username !== "") return "An issuer is an address without a query and user name.";
  if (ofAllTenants.test(pathname))
    return "This issuer serves every company, so anybody could sign in. Give the issuer of one tenant: its address contains the tenant's id.";
  const isLocal = hostname === "localhost" || isIP(hostname.replace(/[[\]]/g, "")) !== 0;
  if (protocol !== "https:" && !isLocal) return "An issuer needs HTTPS; only an IP address may do without.";
  return undefined;
}
