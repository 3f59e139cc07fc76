import { privateUrlProblem } from "../../kit/reachable-addresses.ts";
import type { Result } from "../../contract/routes.ts";
import { newId } from "../../kit/ids.ts";
import { pageOf } from "../../kit/page.ts";
import { newWebhookSecret } from "../../kit/standard-webhooks.ts";
import type { Context, HandlerPlatform, Handlers } from "../context.ts";
import { requireMayDeploy } from "../builds/builds.ts";
import { sealFollow } from "./follow.ts";
import * as queries from "./queries.ts";
import { fingerprintOf } from "../../kit/ssh-fingerprint.ts";
import { planEvent, providerOf, readHostKey } from "./rules.ts";

const mostManualPerMinute = 10;

export const follow: Handlers<"follow"> = {
  async set(ctx, { body }) {
    const { platform, project, tx } = ctx;
    if (!platform.admitsCode({ slug: ctx.caller.org_slug }))
      return ctx.fail("forbidden", {
        error: "This machine cannot isolate applications, so it runs the code of its first organization only.",
        hint: "Ask the platform's operator to set up isolation.",
      });
    if (project.preview_of !== null)
      return ctx.fail("conflict", {
        error: "A preview follows no repository.",
        hint: "Follow it in the project that the preview belongs to.",
      });
    const { url, branch, token } = body;
    const problem = privateUrlProblem(url, platform.settings.outgoingNetworks);
    if (problem !== undefined)
      return ctx.fail("invalid_request", { error: problem, details: [{ path: "url", message: problem }] });
    const hostKey = hostKeyOf(ctx, body);
    const provider = body.provider ?? providerOf(url);
    const known = await queries.selectFollow(tx, project.key);
    // A different repository has its own key and secret, so the present follow must not be reused for it.
    if (known !== undefined && known.url !== url)
      return ctx.fail("conflict", {
        error: `The project already follows ${known.url}.`,
        hint: "To follow another repository, stop first: berth unfollow",
      });
    const secret = known === undefined ? newWebhookSecret() : null;
    const { id } = known ?? (await insertFollow(ctx, { url, branch, provider, secret: secret ?? "" }));
    const sealed = token === undefined ? {} : { sealed_token: token && sealFollow(platform.vault, id, "token", token) };
    const row = await queries.updateFollow(tx, id, {
      branch,
      provider,
      ...(sealed as { sealed_token?: Buffer | null }),
      ...hostKey,
    });
    if (body.deploy) await queries.deployWaiting(tx, id);
    else await insertManual(ctx, row, false);
    await platform.wakeups.send(tx, "follow", id);
    ctx.note({ target: url, detail: { branch, provider } });
    return { ...present(platform, row), secret };
  },

  async get(ctx) {
    return present(ctx.platform, await followOf(ctx));
  },

  async delete(ctx) {
    const gone = await queries.deleteFollow(ctx.tx, ctx.project.key);
    if (gone === undefined) return ctx.fail("not_found", nothingFollowed);
    ctx.note({ target: gone.url, detail: { branch: gone.branch } });
    return undefined;
  },

  async fetch(ctx, { body: { deploy } }) {
    requireMayDeploy(ctx);
    const followed = await followOf(ctx);
    const { id, url, branch } = followed;
    if ((await queries.countManual(ctx.tx, id)) >= mostManualPerMinute)
      return ctx.fail("rate_limited", {
        error: `The branch was fetched by hand ${mostManualPerMinute} times in the last minute.`,
        retryAfterSeconds: 60,
      });
    const delivery = await insertManual(ctx, followed, deploy);
    await queries.requestFetch(ctx.tx, id, "person");
    await ctx.platform.wakeups.send(ctx.tx, "follow", id);
    ctx.note({ target: url, detail: { branch } });
    return presentDelivery(await queries.selectDelivery(ctx.tx, id, delivery));
  },

  async deliveries(ctx, { query }) {
    const { id } = await followOf(ctx);
    const rows = await queries.listDeliveries(ctx.tx, id, query);
    const { shown, next_cursor } = pageOf(rows, query.limit, (row) => row.id);
    return { deliveries: shown.map(presentDelivery), next_cursor };
  },
};

/** Inserts what a person requests, and returns its id. */
async function insertManual(
  { tx }: Pick<Context<"follow.fetch">, "tx">,
  { id: follow_id, org_id }: Pick<queries.FollowRow, "id" | "org_id">,
  deploy: boolean,
): Promise<string> {
  const id = newId("fdl");
  const event = deploy ? "fetch" : planEvent;
  await queries.insertDelivery(tx, { id, org_id, follow_id, source: "manual", event, status: "waiting", signed: true });
  return id;
}

const nothingFollowed = {
  error: "The project does not follow a repository.",
  hint: "Follow one: berth follow <url>",
};

/** Returns the columns for a given host key; null clears the stored key, so that the next key the host presents is remembered. */
function hostKeyOf(
  { fail }: Pick<Context<"follow.set">, "fail">,
  { url, host_key }: { url: string; host_key?: string | null | undefined },
) {
  if (host_key === undefined) return {};
  if (host_key === null) return { host_key_pin: null, host_keys: null };
  const read = url.startsWith("ssh:") ? readHostKey(host_key) : null;
  if (read === null)
    return fail("invalid_request", {
      error:
        "host_key: use the fingerprint of the SSH host's key, such as SHA256:…, or its public key; an https:// address has no host key.",
    });
  return { host_key_pin: read.pin, host_keys: read.line };
}

type FollowContext = Context<"follow.get"> | Context<"follow.fetch"> | Context<"follow.deliveries">;

async function followOf({ tx, project, fail }: FollowContext): Promise<queries.FollowRow> {
  return (await queries.selectFollow(tx, project.key)) ?? fail("not_found", nothingFollowed);
}

interface Followed extends Pick<queries.NewFollow, "url" | "branch" | "provider"> {
  readonly secret: string;
}

async function insertFollow({ platform, project, tx }: Context<"follow.set">, { secret, ...followed }: Followed) {
  const id = newId("fol");
  const isSsh = followed.url.startsWith("ssh:");
  const key = isSsh ? await platform.ports.repositories.makeDeployKey(`berth-${project.slug}`) : null;
  return queries.insertFollow(tx, {
    ...{ id, ...project.key, ...followed },
    public_key: key?.publicKey ?? null,
    sealed_key: key && sealFollow(platform.vault, id, "key", key.privateKey),
    sealed_secret: sealFollow(platform.vault, id, "secret", secret),
  });
}

function present(platform: HandlerPlatform, row: queries.FollowRow): Result<"follow.get"> {
  const { host_keys, sealed_token, ...shown } = row;
  return {
    ...shown,
    provider: row.provider as Result<"follow.get">["provider"],
    host_key: row.host_key_pin ?? fingerprintOf(host_keys),
    has_token: sealed_token !== null,
    hook_url: `${platform.addresses.controlUrl}/hooks/${row.id}`,
  };
}

type Delivery = Result<"follow.fetch">;

function presentDelivery(row: queries.DeliveryRow): Delivery {
  const { build_id, build_number, build_status, deployment_number, deployment_status, ...delivery } = row;
  const deployment =
    deployment_number === null || deployment_status === null
      ? null
      : { number: deployment_number, status: deployment_status };
  const build =
    build_id === null || build_number === null || build_status === null
      ? null
      : { id: build_id, number: build_number, status: build_status, deployment };
  return { ...delivery, build } as Delivery;
}
