import { createHash, randomBytes } from "node:crypto";
import type { Context, Handlers } from "../context.ts";
import type { Db, Tx } from "../../store/database.ts";
import type { Vault } from "../../store/vault.ts";
import { voidApprovals } from "../approvals/approvals.ts";
import { recordActivity } from "../activity/activity.ts";
import { lockKeepsOwner } from "../tokens/tokens.ts";
import { endOwnerTokens } from "./end-membership.ts";
import { endSessions, lockPeople, revokeTokens, selectPerson, tokensOfMember, useChallenge } from "./queries.ts";
import { sql } from "kysely";

/** What the platform's operator does with people. */
export const accountHandlers: Pick<Handlers<"people">, "accounts" | "link" | "disable" | "enable"> = {
  async accounts({ tx }) {
    return { accounts: await accounts(tx).orderBy("person.id").execute() };
  },

  async link(ctx, { params: { id } }) {
    const { platform, now } = ctx;
    const found = (await selectAccount(ctx.tx, id)) ?? ctx.fail("not_found");
    if (found.disabled_at !== null) return ctx.fail("conflict", { error: `${found.name} is disabled.` });
    if (found.organizations.length === 0)
      return ctx.fail("conflict", { error: `${found.name} is in no organization.`, hint: "Invite them again." });
    const until = now.getTime() + linkMs;
    const link = JSON.stringify({ person: id, until, random: randomBytes(16).toString("base64url") });
    const code = platform.vault.seal(sealedFor, "link", link).toString("base64url");
    await tellOrganizations(ctx, "person.link_made", found);
    // In the URL's fragment, so that it reaches neither server logs nor a Referer.
    const url = `${platform.addresses.controlUrl}/sign-in#${personLinkPrefix}${code}`;
    return { id, url, expires_at: new Date(until).toISOString() };
  },

  async disable(ctx, { params: { id } }) {
    const { tx, platform } = ctx;
    const found = (await selectAccount(tx, id)) ?? ctx.fail("not_found");
    const memberships = await membershipsToEnd(tx, id);
    for (const { org_id, id: member, role } of memberships) {
      await lockPeople(tx, org_id);
      const ending = (await tokensOfMember(tx, org_id, member)).map((token) => token.id);
      if (role === "owner" && !(await lockKeepsOwner(tx, org_id, ending)))
        return ctx.fail("last_owner_token", {
          error: `${found.name} is the last owner of an organization.`,
          hint: "Give it another owner first: `berth orgs rescue` makes a token for one.",
        });
    }
    if (!(await setDisabled(tx, id, true)))
      return ctx.fail("conflict", { error: `${found.name} is disabled already.` });
    await endSessions(tx, { person_id: id });
    const last_owner_of: string[] = [];
    for (const { org_id, id: member } of memberships) {
      last_owner_of.push(...(await endOwnerTokens(ctx, { org_id, id: member })));
      const made = (await tokensOfMember(tx, org_id, member)).map((token) => token.id);
      await endKeysAndInvites(tx, org_id, made);
      // The membership stays, for the case that the person is enabled again.
      const ended = made.filter((token) => token !== member);
      if (ended.length > 0) await revokeTokens(tx, org_id, ended);
      for (const token_id of made) await voidApprovals(tx, platform.wakeups, { org_id, token_id });
    }
    await platform.wakeups.send(tx, "tokens");
    await tellOrganizations(ctx, "person.disabled", found);
    if (last_owner_of.length > 0) ctx.note({ detail: { last_owner_of } });
    return (await selectAccount(tx, id)) ?? ctx.fail("not_found");
  },

  async enable(ctx, { params: { id } }) {
    const found = (await selectAccount(ctx.tx, id)) ?? ctx.fail("not_found");
    if (!(await setDisabled(ctx.tx, id, false)))
      return ctx.fail("conflict", { error: `${found.name} is not disabled.` });
    await tellOrganizations(ctx, "person.enabled", found);
    return { ...found, ...(await selectAccount(ctx.tx, id)) };
  },
};

const linkMs = 15 * 60_000;
const sealedFor = "person";

/** By which the sign-in page's codes of people differ from those of tokens. */
export const personLinkPrefix = "p.";

/** Returns whose link a code is of; undefined when it has expired, or is none. Does not use it. */
export async function readPersonLink({ db, vault }: { readonly db: Db; readonly vault: Vault }, code: string) {
  try {
    const text = vault.open(sealedFor, "link", sealedOf(code));
    const { person, until } = JSON.parse(text) as { person: string; until: number };
    return until > Date.now() ? await selectPerson(db, person) : undefined;
  } catch {
    return undefined;
  }
}

/** Uses a person's link; returns false when it was used before. */
export async function usePersonLink(db: Db, code: string): Promise<boolean> {
  // The bytes, because several texts decode to the same ones.
  return useChallenge(db, createHash("sha256").update(sealedOf(code)).digest(), new Date(Date.now() + linkMs));
}

const sealedOf = (code: string) => Buffer.from(code.slice(personLinkPrefix.length), "base64url");

interface Told {
  readonly id: string;
  readonly name: string;
}

type Changing = Context<"people.link"> | Context<"people.disable"> | Context<"people.enable">;

/** Records what the operator did in the person's organizations, too. */
async function tellOrganizations(ctx: Changing, action: string, { id, name: target }: Told): Promise<void> {
  const { caller, note, tx } = ctx;
  note({ target, resource: id });
  for (const { org_id } of await membershipsToEnd(tx, id))
    if (org_id !== caller.org_id)
      await recordActivity(tx, {
        ...{ org_id, project_id: null, actor_token_id: null, actor_name: "The platform's operator" },
        ...{ action, target, detail: {} },
      });
}

const accounts = (db: Db | Tx) =>
  db.selectFrom("person").select([
    "person.id",
    "person.name",
    "person.email",
    "person.created_at",
    "person.disabled_at",
    sql<boolean>`can_sign_in(person.id)`.as("can_sign_in"),
    sql<string[]>`array(select slug from organization join api_token on org_id = organization.id
        where person_id = person.id and kind = 'member' and revoked_at is null order by slug)`.as("organizations"),
    sql<string | null>`(select max(last_used_at) from session where person_id = person.id)`.as("last_used_at"),
  ]);

async function selectAccount(db: Db | Tx, id: string) {
  return accounts(db).where("person.id", "=", id).executeTakeFirst();
}

/** Disables or enables a person; returns false when that is so already. */
async function setDisabled(tx: Tx, id: string, disabled: boolean): Promise<boolean> {
  const done = await tx
    .updateTable("person")
    .set({ disabled_at: disabled ? sql`now()` : null })
    .where("id", "=", id)
    .where("disabled_at", disabled ? "is" : "is not", null)
    .executeTakeFirst();
  return done.numUpdatedRows === 1n;
}

/** Returns a person's memberships, in the order in which organizations are locked. */
async function membershipsToEnd(tx: Tx, personId: string) {
  return tx
    .selectFrom("api_token")
    .select(["id", "org_id", "role"])
    .where(({ and }) => and({ person_id: personId, kind: "member" }))
    .where("revoked_at", "is", null)
    .orderBy("org_id")
    .execute();
}

/** Deletes the SSH keys that these tokens registered, and revokes the invitations that they sent. */
async function endKeysAndInvites(tx: Tx, orgId: string, tokenIds: readonly string[]): Promise<void> {
  await tx
    .deleteFrom("ssh_key")
    .where("org_id", "=", orgId)
    .where("created_by", "in", [...tokenIds])
    .execute();
  await tx
    .updateTable("invite")
    .set({ revoked_at: sql`now()` })
    .where("org_id", "=", orgId)
    .where("created_by", "in", [...tokenIds])
    .where("used_at", "is", null)
    .where("revoked_at", "is", null)
    .execute();
}
