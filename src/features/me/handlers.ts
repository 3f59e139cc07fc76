import { Refused, type Handlers } from "../context.ts";
import { describePerson, endSessionsOf, sessionsOf } from "../people/people.ts";
import { findToken } from "../tokens/tokens.ts";

export const me: Handlers<"me"> = {
  async get(ctx) {
    const { caller, platform } = ctx;
    const token = await findToken(ctx.tx, caller, caller.token_id);
    // The token was revoked a moment ago.
    if (token === undefined) throw new Refused("unauthorized");
    const runtime = await platform.ports.runtime.describe();
    const { network, isolation, missing } = runtime;
    return {
      organization: { id: caller.org_id, slug: caller.org_slug, name: caller.org_name },
      person: await describePerson(ctx.tx, caller.person_id),
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

  async sessions({ tx, caller }) {
    return { sessions: caller.person_id === null ? [] : await sessionsOf(tx, caller.person_id) };
  },

  async end_sessions({ tx, caller, platform, fail, note }) {
    if (caller.person_id === null)
      return fail("conflict", { error: "This token is no person's session.", hint: "Revoke it: berth tokens revoke" });
    const ended = await endSessionsOf({ db: tx, wakeups: platform.wakeups }, caller.person_id);
    note({ target: caller.token_name, detail: { sessions: ended } });
    return undefined;
  },
};
