import { limits } from "../../contract/limits.ts";
import { newId } from "../../kit/ids.ts";
import type { Handlers } from "../context.ts";
import { mayRevoke, mayRevokeOthers, ownTokenIds, requireRightsNow } from "../tokens/tokens.ts";
import { deleteKey, insertKey, listKeys, lockKeyCount, selectRegistrant } from "./queries.ts";
import { parsePublicKey } from "./rules.ts";

export const sshKeys: Handlers<"ssh-keys"> = {
  async create(ctx, { body }) {
    const { caller, now } = ctx;
    const parsed = parsePublicKey(body.public_key);
    if ("refused" in parsed)
      return ctx.fail("invalid_request", {
        error: parsed.refused,
        details: [{ path: "public_key", message: parsed.refused }],
      });
    if ((await lockKeyCount(ctx.tx, caller.org_id)) >= limits.ssh_keys_per_organization)
      return ctx.fail("conflict", {
        error: `An organization has at most ${limits.ssh_keys_per_organization} SSH keys.`,
        hint: "Remove one that is no longer used: berth keys remove <name>",
      });
    await requireRightsNow(ctx);
    const id = newId("key", now.getTime());
    const key = await insertKey(ctx.tx, {
      ...parsed,
      id,
      org_id: caller.org_id,
      name: body.name,
      created_by: caller.token_id,
      created_at: now,
    });
    if (key === undefined) return ctx.fail("key_taken");
    ctx.note({ target: key.id, detail: { name: key.name, fingerprint: key.fingerprint } });
    return key;
  },

  async list(ctx) {
    const { tx, caller } = ctx;
    const rows = await listKeys(tx, caller.org_id);
    // Who is limited to projects sees nothing of others elsewhere in the organization.
    const own = caller.project_ids === null ? null : await ownTokenIds(tx, caller);
    return { ssh_keys: rows.filter(({ created_by: by }) => own === null || (by !== null && own.has(by))) };
  },

  async delete(ctx, { params }) {
    const registrant = await selectRegistrant(ctx.tx, ctx.caller.org_id, params.id);
    if (registrant === undefined) return ctx.fail("not_found");
    const { role, platform_admin, active, created_by } = registrant;
    if (active && !mayRevoke(ctx.caller, { role: role ?? "member", platform_admin: platform_admin ?? false }))
      return ctx.fail("forbidden", {
        error: "The token that registered this SSH key has more rights than yours, so you cannot delete the key.",
        hint: "Ask an owner of the organization to delete it.",
      });
    if (active && !mayRevokeOthers(ctx.caller) && !(await ownTokenIds(ctx.tx, ctx.caller)).has(created_by ?? ""))
      return ctx.fail("forbidden", {
        error: "Members delete only the SSH keys that they registered.",
        hint: "Ask an owner of the organization to delete it.",
      });
    const key = await deleteKey(ctx.tx, ctx.caller.org_id, params.id);
    if (key === undefined) return ctx.fail("not_found");
    ctx.note({ target: params.id, detail: { ...key } });
    return undefined;
  },
};
