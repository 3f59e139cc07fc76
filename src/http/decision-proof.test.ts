import assert from "node:assert/strict";
import { test } from "node:test";
import { nonceIn, pressButton, quietNotifier } from "../../test/support/approvals.ts";
import { softAuthenticator } from "../../test/support/authenticator.ts";
import { testProject } from "../../test/support/fixtures.ts";
import { sharedApi, testOrganization, testToken } from "../../test/support/test-platform.ts";

const api = await sharedApi({ ports: { notifiers: [quietNotifier] } });
const { db } = api.database;
const origin = "https://berth.test";
(api.platform.addresses as { controlUrl: string }).controlUrl = origin;
const org = await testOrganization(db, "decides");

const ownPage = { origin, "x-berth-dashboard": "1" };
const post = (path: string, body: object) => api.call("POST", `/session/${path}`, { headers: ownPage, body });

/** Makes an owner who has a passkey; returns it, and the cookie of their session. */
async function owner(name: string) {
  const invited = await api.call("POST", "/v1/invites", { token: org.owner, body: { role: "owner" } });
  const code = String(invited.body["url"]).split("/join#")[1];
  const device = softAuthenticator(origin);
  const { body } = await post("join", { code, name });
  const joined = await post("join", { code, name, passkey: device.create(body["options"] as never) });
  assert.equal(joined.status, 200, joined.text);
  return { device, cookie: (joined.headers.get("set-cookie") ?? "").split(";")[0] ?? "" };
}

let asked = 0;
/** Asks, as an agent in approval mode, to delete a project; returns the approval's id. */
async function ask(): Promise<string> {
  const { text: token } = await testToken(db, org.id, { role: "owner", approval_mode: true });
  const { slug } = await testProject(api.platform, org, `asked-${(asked += 1)}`);
  const called = await api.call("DELETE", `/v1/projects/${slug}`, { token });
  assert.equal(called.body["code"], "approval_required", called.text);
  return (called.body["approval"] as { id: string }).id;
}

type Options = Record<"approved" | "denied", { challenge: string; rpId: string }>;

/** Opens the page of a decision; returns what is in it. */
async function open(id: string, cookie: string) {
  const { text } = await api.call("GET", `/session/decide/${id}`, { headers: { cookie } });
  return { nonce: nonceIn(text), options: optionsIn(text) };
}

function optionsIn(html: string): Options {
  const sign = /data-sign="([^"]*)"/.exec(html)?.[1]?.replaceAll("&quot;", '"').replaceAll("&amp;", "&");
  return JSON.parse(sign ?? "null") as Options;
}

const statusOf = async (id: string) =>
  (await api.call("GET", `/v1/approvals/${id}`, { token: org.owner })).body["status"];

const press = (id: string, cookie: string, form: Record<string, string>) =>
  pressButton(api, `/session/decide/${id}`, form, { origin, cookie });

test("a person decides by a signature over this approval and this choice, by their own passkey, once", async () => {
  const { device, cookie } = await owner("Ada");
  const eve = await owner("Eve");
  const [id, other] = [await ask(), await ask()];
  const { nonce, options } = await open(id, cookie);
  const ofOther = await open(other, cookie);
  const sign = (by: typeof device, given: Options["approved"]) => JSON.stringify(by.get(given));
  const signIn = (await post("passkey", {})).body["options"] as Options["approved"];
  const refused = {
    none: "",
    nonsense: "{",
    "another approval's": sign(device, ofOther.options.approved),
    "the other choice's": sign(device, options.denied),
    "another person's": sign(eve.device, options.approved),
    "a sign-in's": sign(device, signIn),
  };
  for (const [what, signature] of Object.entries(refused)) {
    const answer = await press(id, cookie, { choice: "approved", nonce, signature });
    assert.equal(answer.status, 403, what);
    // The form is there again, with new challenges.
    const html = answer.text;
    assert.match(html, /role="alert"/, what);
    assert.notEqual(optionsIn(html).approved.challenge, options.approved.challenge);
    assert.equal(await statusOf(id), "pending", what);
  }
  const again = await open(id, cookie);
  const signature = sign(device, again.options.approved);
  assert.equal((await press(id, cookie, { choice: "approved", nonce, signature })).status, 200);
  assert.equal(await statusOf(id), "approved");
  const { activity } = (await api.call("GET", "/v1/activity", { token: org.owner })).body as {
    activity: { action: string; summary: string; actor: { name: string } }[];
  };
  const told = activity.find(({ action }) => action === "approval.approved");
  assert.deepEqual([told?.actor.name, told?.summary.startsWith("Approved by passkey: ")], ["Ada", true]);
});

test("without a passkey a session decides only right after a fresh sign-in", async () => {
  const { cookie } = await owner("Pat");
  await db.deleteFrom("passkey").execute();
  const id = await ask();
  const { nonce, options } = await open(id, cookie);
  assert.equal(options, null);
  await db
    .updateTable("session")
    .set({ fresh_at: new Date(Date.now() - 11 * 60_000) })
    .execute();
  // Until then the session's caller is cached.
  const forgotten = once(api.platform.wakeups);
  await api.platform.wakeups.send(db, "tokens");
  await forgotten;
  const stale = await press(id, cookie, { choice: "denied", nonce });
  assert.deepEqual([stale.status, await statusOf(id)], [403, "pending"]);
  await db.updateTable("session").set({ fresh_at: new Date() }).execute();
  const again = once(api.platform.wakeups);
  await api.platform.wakeups.send(db, "tokens");
  await again;
  assert.equal((await press(id, cookie, { choice: "denied", nonce })).status, 200);
});

/** Resolves with the next wake-up of tokens, which clears cached callers. */
function once(wakeups: typeof api.platform.wakeups): Promise<void> {
  return new Promise((resolve) => {
    const stop = wakeups.on("tokens", () => {
      stop();
      resolve();
    });
  });
}
