import { Refused, type Context, type Handlers } from "../context.ts";
import * as people from "../people/people.ts";
import { findToken } from "../tokens/tokens.ts";

export const me: Handlers<"me"> = {
  async get(ctx) {
    const { caller, platform } = ctx;
    const token = await findToken(ctx.tx, caller.org_id, caller.token_id);
    // The token was revoked a moment ago.
    if (token === undefined) throw new Refused("unauthorized");
    const runtime = await platform.ports.runtime.describe();
    const { network, isolation, missing } = runtime;
    return {
      organization: { id: caller.org_id, slug: caller.org_slug, name: caller.org_name },
      person: await people.describePerson(ctx.tx, caller.person_id),
      role: caller.role,
      platform_admin: caller.platform_admin,
      token,
      platform: {
        version: platform.version,
        ssh_host_key: platform.sshHostKey,
        runtime: runtime.name,
        network,
        isolation: [...isolation],
        missing: [...missing],
      },
    };
  },

  async update(ctx, { body: { name } }) {
    await people.renamePerson(ctx.tx, personOf(ctx), name);
    await ctx.platform.wakeups.send(ctx.tx, "tokens");
    ctx.note({ target: name, detail: { before: ctx.caller.token_name } });
    return undefined;
  },

  async passkeys({ tx, caller, platform }) {
    const person = sessionPersonOf(caller);
    return { passkeys: person === null ? [] : await people.passkeysOf(tx, person, hostOf(platform)) };
  },

  async rename_passkey(ctx, { params: { id }, body: { name } }) {
    if (!(await people.renamePasskey(ctx.tx, personOf(ctx), { id, name }))) return ctx.fail("not_found");
    ctx.note({ target: ctx.caller.token_name, resource: id, detail: { name } });
    return undefined;
  },

  async delete_passkey(ctx, { params }) {
    return removeOwnWay(ctx, params.id);
  },

  async identities({ tx, caller }) {
    const person = sessionPersonOf(caller);
    return { identities: person === null ? [] : await people.identitiesOf(tx, person) };
  },

  async unlink_identity(ctx, { params }) {
    return removeOwnWay(ctx, params.id);
  },

  async sessions({ tx, caller }) {
    const person = sessionPersonOf(caller);
    return { sessions: person === null ? [] : await people.sessionsOf(tx, person) };
  },

  async end_sessions(ctx) {
    const ended = await people.endSessionsOf(ctx.tx, ctx.platform.wakeups, personOf(ctx));
    ctx.note({ target: ctx.caller.token_name, detail: { sessions: ended } });
    return undefined;
  },

  leave: people.leave,
};

type Changing =
  | Context<"me.update">
  | Context<"me.rename_passkey">
  | Context<"me.delete_passkey">
  | Context<"me.unlink_identity">
  | Context<"me.end_sessions">;

/** Returns whose session it is; null for a token, also for that of a person's program: browsers and addresses are not its business. */
function sessionPersonOf({ person_id, session_id }: Changing["caller"]): string | null {
  return session_id === null ? null : person_id;
}

/** Returns whose session it is; refuses tokens. */
function personOf({ caller, fail }: Changing): string {
  return (
    sessionPersonOf(caller) ??
    fail("conflict", { error: "This token is no person's session.", hint: "Sign in to the dashboard." })
  );
}

const hostOf = ({ addresses }: Changing["platform"]) => new URL(addresses.controlUrl).hostname;

async function removeOwnWay(ctx: Context<"me.delete_passkey"> | Context<"me.unlink_identity">, id: string) {
  const removed = await people.removeWay(ctx.tx, { person_id: personOf(ctx), host: hostOf(ctx.platform) }, id);
  if (removed === "last")
    return ctx.fail("conflict", {
      error: "This is your last way to sign in.",
      hint: "Add a passkey or another account first.",
    });
  if (!removed) return ctx.fail("not_found");
  ctx.note({ target: ctx.caller.token_name, resource: id });
  return undefined;
}
