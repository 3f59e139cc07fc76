import { limits } from "../../contract/limits.ts";
import type { Db, Tx } from "../../store/database.ts";
import type { Handlers, HandlerPlatform } from "../context.ts";
import { describeIssuer, secretName } from "./providers.ts";
import * as queries from "./queries.ts";
import { isIP } from "node:net";

export const providers: Handlers<"providers"> = {
  async list({ tx, platform }) {
    return { providers: (await queries.listProviders(tx)).map((each) => shown(platform, each)) };
  },

  async set(ctx, { params: { id }, body }) {
    const { platform, fail } = ctx;
    const { kind, name, client_id, client_secret, issuer: given } = body;
    const issuer = kind === "github" ? (given ?? "https://github.com").replace(/\/+$/, "") : given;
    const refuse = (error: string) => fail("invalid_request", { error, details: [{ path: "issuer", message: error }] });
    if (issuer === undefined) return refuse("Which issuer? Give its address.");
    const problem = issuerProblem(issuer);
    if (problem !== undefined) return refuse(problem);
    const requireRoom = async (tx: Db | Tx) => {
      const others = (await queries.listProviders(tx)).filter((each) => each.id !== id);
      if (others.some((each) => each.issuer === issuer))
        fail("conflict", { error: "Another provider has this issuer already." });
      if (others.length >= limits.providers)
        fail("conflict", { error: `A platform has at most ${limits.providers} providers.` });
    };
    await requireRoom(ctx.tx);
    ctx.note({ target: id, detail: { kind, issuer } });
    const look = async () => {
      if (kind === "oidc")
        await describeIssuer(platform.ports.outgoingHttp, issuer).catch(({ message }: Error) =>
          refuse(`${issuer} does not work as an issuer. ${message}`),
        );
    };
    const outcome = async () => {
      await look();
      const sealed_secret = platform.vault.seal(id, secretName, client_secret);
      const stored = { id, kind, name, issuer, client_id, sealed_secret };
      const row = await platform.db.transaction().execute(async (tx) => {
        await queries.lockProviders(tx);
        await requireRoom(tx);
        return queries.setProvider(tx, stored);
      });
      return shown(platform, row);
    };
    return { changesLate: true as const, look, outcome };
  },

  async delete(ctx, { params }) {
    if (!(await queries.deleteProvider(ctx.tx, params.id))) return ctx.fail("not_found");
    ctx.note({ target: params.id });
    return undefined;
  },
};

type Row = Awaited<ReturnType<typeof queries.listProviders>>[number];

function shown({ addresses }: Pick<HandlerPlatform, "addresses">, { kind, ...row }: Row) {
  const callback_url = `${addresses.controlUrl}/session/oidc/${row.id}/callback`;
  return { ...row, kind: kind as "oidc" | "github", callback_url };
}

/** Microsoft's issuers for accounts of every company (https://learn.microsoft.com/entra/identity-platform/v2-protocols-oidc). */
const ofAllTenants = /^\/(?:common|organizations|consumers)(?:\/|$)|[{}]|%7[bd]/i;

/** Returns why people cannot sign in with this issuer, or undefined. */
function issuerProblem(issuer: string): string | undefined {
  const { protocol, hostname, pathname, search, hash, username } = new URL(issuer);
  if (search !== "" || hash !== "" || username !== "") return "An issuer is an address without a query and user name.";
  if (ofAllTenants.test(pathname))
    return "This issuer serves every company, so anybody could sign in. Give the issuer of one tenant: its address contains the tenant's id.";
  const isLocal = hostname === "localhost" || isIP(hostname.replace(/[[\]]/g, "")) !== 0;
  if (protocol !== "https:" && !isLocal) return "An issuer needs HTTPS; only an IP address may do without.";
  return undefined;
}
