import { Refused, type Handlers } from "../context.ts";
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
};
