import { limits } from "../../contract/limits.ts";
import type { Handlers } from "../context.ts";
import { deleteRegistry, listRegistries, setRegistry } from "./queries.ts";
import { passwordName, privateHostProblem } from "./registries.ts";
import { normalizedHost } from "./rules.ts";

function refusedLogin(host: string, username: string) {
  const error = `${host} refused this password of ${username}; nothing was stored.`;
  const hint =
    "Check user and password, for example with `docker login`. Many registries want an access token instead of the account's password.";
  return { error, hint, details: [{ path: "password", message: "was refused by the registry" }] };
}

export const registries: Handlers<"registries"> = {
  async list(ctx) {
    return { registries: await listRegistries(ctx.tx, ctx.caller.org_id) };
  },

  async set(ctx, { params, body }) {
    const { org_id } = ctx.caller;
    const host = normalizedHost(params.host);
    const problem = privateHostProblem(host, ctx.platform.settings.privateRegistries);
    if (problem !== undefined)
      return ctx.fail("invalid_request", { error: problem, details: [{ path: "host", message: problem }] });
    const known = await listRegistries(ctx.tx, org_id);
    const isKnown = known.some((one) => one.host === host);
    if (known.length >= limits.registries && !isKnown)
      return ctx.fail("conflict", {
        error: `The organization has ${known.length} registries, which is the limit.`,
        hint: "Remove one that no build needs any more.",
      });
    const { username, password } = body;
    const { db, vault, ports } = ctx.platform;
    // Nothing brings an overwritten password back.
    ctx.note({ target: host, detail: { username }, losesNothing: !isKnown });
    const tryLogin = async () => {
      const tried = (await ports.builder.tryLogin?.({ host, username, password })) ?? "unknown";
      if (tried === "refused") ctx.fail("invalid_request", refusedLogin(host, username));
      return tried === "accepted" ? ("accepted" as const) : ("untried" as const);
    };
    const outcome = async () => {
      const login = await tryLogin();
      const sealed_password = vault.seal(org_id, passwordName(host), password);
      const stored = { org_id, host, username, sealed_password };
      return { ...(await db.transaction().execute((tx) => setRegistry(tx, stored))), login };
    };
    return { changesLate: true as const, look: async () => void (await tryLogin()), outcome };
  },

  async delete(ctx, { params }) {
    const host = normalizedHost(params.host);
    if (!(await deleteRegistry(ctx.tx, ctx.caller.org_id, host))) return ctx.fail("not_found");
    ctx.note({ target: host });
    return undefined;
  },
};
