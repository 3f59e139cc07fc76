import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, test } from "node:test";
import { runOk } from "../../kit/exec.ts";
import { sharedApi, testOrganization, testToken } from "../../../test/support/test-platform.ts";
import { testFolder } from "../../../test/support/test-folder.ts";
import { parsePublicKey } from "./rules.ts";
import { keysByFingerprint } from "./ssh-keys.ts";

const skip = existsSync("/usr/bin/ssh-keygen") ? false : "ssh-keygen is not installed";
const folder = testFolder("keys");
const api = await sharedApi();
const org = await testOrganization(api.database.db, "acme");

async function keygen(
  name: string,
  ...args: string[]
): Promise<{ publicKey: string; privateKey: string; fingerprint: string }> {
  const file = join(folder, name);
  await runOk({ file: "ssh-keygen", args: ["-q", "-N", "", "-C", "ada@laptop", "-f", file, ...args] });
  const { stdout } = await runOk({ file: "ssh-keygen", args: ["-l", "-f", `${file}.pub`] });
  return {
    publicKey: await readFile(`${file}.pub`, "utf8"),
    privateKey: await readFile(file, "utf8"),
    fingerprint: stdout.split(" ")[1] as string,
  };
}

function refusal(text: string): string {
  const parsed = parsePublicKey(text);
  return "refused" in parsed ? parsed.refused : assert.fail("it was accepted");
}

describe("keys that OpenSSH makes", { skip }, () => {
  const kinds = {
    ed25519: ["-t", "ed25519"],
    rsa: ["-t", "rsa", "-b", "2048"],
    p256: ["-t", "ecdsa", "-b", "256"],
    p384: ["-t", "ecdsa", "-b", "384"],
    p521: ["-t", "ecdsa", "-b", "521"],
  };
  for (const [name, args] of Object.entries(kinds)) {
    test(`${name} is accepted with OpenSSH's fingerprint, its comment dropped`, async () => {
      const { publicKey, fingerprint } = await keygen(name, ...args);
      const parsed = parsePublicKey(`\n  ${publicKey}\r\n`);
      assert.deepEqual(parsed, { public_key: publicKey.split(" ").slice(0, 2).join(" "), fingerprint });
    });
  }

  test("RSA below 2048 bits is refused", async () => {
    const { publicKey } = await keygen("weak", "-t", "rsa", "-b", "1024");
    assert.match(refusal(publicKey), /at least 2048 bits; this one has 1024/);
  });

  test("a private key is refused without being repeated", async () => {
    const { privateKey } = await keygen("private", "-t", "ed25519");
    const called = await api.call("POST", "/v1/ssh-keys", {
      token: org.member,
      body: { name: "x", public_key: privateKey },
    });
    assert.deepEqual([called.status, called.body["code"]], [400, "invalid_request"]);
    assert.match(called.text, /private key/);
    for (const line of privateKey.split("\n").filter((each) => each.length > 20 && !each.startsWith("-")))
      assert.ok(!called.text.includes(line));
  });

  test("several keys in one text are refused", async () => {
    const [one, two] = [await keygen("one", "-t", "ed25519"), await keygen("two", "-t", "ed25519")];
    assert.match(refusal(one.publicKey + two.publicKey), /one key at a time/);
  });

  test("a key that is cut off or bent is refused", async () => {
    for (const kind of [
      ["-t", "ed25519"],
      ["-t", "ecdsa", "-b", "256"],
    ]) {
      const { publicKey } = await keygen(`bent-${kind.at(-1)}`, ...kind);
      const [type = "", encoded = ""] = publicKey.split(" ");
      assert.match(refusal(`${type} ${encoded.slice(0, -8)}`), /damaged/);
      assert.match(refusal(`ssh-rsa ${encoded}`), /damaged/);
      assert.match(refusal(`${type} ${encoded}!`), /base64/);
    }
    const { publicKey } = await keygen("curve", "-t", "ecdsa", "-b", "256");
    const [type = "", encoded = ""] = publicKey.split(" ");
    const blob = Buffer.from(encoded, "base64");
    blob[blob.length - 1] = (blob.at(-1) as number) ^ 1;
    assert.match(refusal(`${type} ${blob.toString("base64")}`), /damaged/);
  });
});

test("keys that cannot work here are refused with what to do instead", () => {
  assert.match(refusal("sk-ssh-ed25519@openssh.com AAAA x"), /security tokens .* ssh-keygen -t ed25519/);
  assert.match(refusal("ssh-dss AAAA x"), /DSA .* ssh-keygen -t ed25519/);
  assert.match(refusal('command="x" ssh-ed25519 AAAA'), /starts with/);
  assert.match(refusal("  \n# only a comment\n"), /no key/);
});

test("the same key twice is refused in one organization and belongs to each of two", { skip }, async () => {
  const { db } = api.database;
  const other = await testOrganization(db, "other");
  const { publicKey, fingerprint } = await keygen("shared", "-t", "ed25519");
  const add = (token: string) =>
    api.call("POST", "/v1/ssh-keys", { token, body: { name: "laptop", public_key: publicKey } });
  const added = await add(org.member);
  assert.deepEqual([added.status, added.body["fingerprint"]], [201, fingerprint]);
  assert.equal((await add(org.owner)).body["code"], "key_taken");
  assert.equal((await add(other.member)).status, 201);
  await db.updateTable("organization").set({ suspended_at: new Date() }).where("id", "=", other.id).execute();
  assert.deepEqual(
    (await keysByFingerprint(db, fingerprint)).map((key) => [key.org_slug, key.suspended]),
    [
      ["acme", false],
      ["other", true],
    ],
  );
  assert.equal(
    (await api.call("DELETE", `/v1/ssh-keys/${String(added.body["id"])}`, { token: org.member })).status,
    204,
  );
  assert.deepEqual(
    (await keysByFingerprint(db, fingerprint)).map((key) => key.org_slug),
    ["other"],
  );
});

const add = (token: string, publicKey: string) =>
  api.call("POST", "/v1/ssh-keys", { token, body: { name: "laptop", public_key: publicKey } });

test("a member deletes no key of an owner or of another member, and an owner every key", { skip }, async () => {
  const remove = async (token: string, added: { body: Record<string, unknown> }) =>
    (await api.call("DELETE", `/v1/ssh-keys/${String(added.body["id"])}`, { token })).status;
  const key = async (name: string) => (await keygen(name, "-t", "ed25519")).publicKey;
  const ofOwner = await add(org.owner, await key("of-owner"));
  assert.equal(await remove(org.member, ofOwner), 403);
  assert.equal(await remove(org.owner, ofOwner), 204);
  const ofMember = await add(org.member, await key("of-member"));
  const another = await testToken(api.database.db, org.id, { scopes: ["ssh-keys:write"] });
  assert.equal(await remove(another.text, ofMember), 403);
  assert.equal(await remove(org.owner, ofMember), 204);
});

test("a token registers a key only if it may itself pull and push", { skip }, async () => {
  const { db } = api.database;
  const { publicKey } = await keygen("narrow", "-t", "ed25519");
  for (const missing of ["projects:read", "deployments:write"] as const) {
    const scopes = (["ssh-keys:write", "projects:read", "deployments:write"] as const).filter((one) => one !== missing);
    const called = await add((await testToken(db, org.id, { scopes })).text, publicKey);
    assert.deepEqual([called.status, called.body["code"]], [403, "insufficient_scope"]);
    assert.match(called.text, new RegExp(`lacks the scope ${missing}`));
  }
  const { text } = await testToken(db, org.id, { scopes: ["ssh-keys:write", "projects:read", "deployments:write"] });
  assert.equal((await add(text, publicKey)).status, 201);
});

test(
  "a key has its token's scopes, and ends with it by revocation, expiry and a program's disuse; then another token may register it",
  {
    skip,
  },
  async () => {
    const { db } = api.database;
    const scopes = ["ssh-keys:write", "projects:read", "deployments:write"] as const;
    const monthAgo = new Date(Date.now() - 30 * 24 * 60 * 60 * 1000);
    for (const end of [
      { revoked_at: new Date() },
      { expires_at: new Date(Date.now() - 1000) },
      { last_used_at: monthAgo, kind: "cli" as const },
    ]) {
      const { publicKey, fingerprint } = await keygen(`ends-${Object.keys(end)[0]}`, "-t", "ed25519");
      const token = await testToken(db, org.id, { scopes });
      const added = await add(token.text, publicKey);
      assert.deepEqual([added.body["active"], added.body["expires_at"]], [true, null]);
      assert.deepEqual((await keysByFingerprint(db, fingerprint))[0]?.scopes, scopes);
      await db.updateTable("api_token").set(end).where("id", "=", token.id).execute();
      assert.deepEqual(await keysByFingerprint(db, fingerprint), []);
      const { body } = await api.call("GET", "/v1/ssh-keys", { token: org.member });
      const listed = (body["ssh_keys"] as { id: string; active: boolean }[]).find(({ id }) => id === added.body["id"]);
      assert.equal(listed?.active, false);
      const again = await add(org.member, publicKey);
      assert.deepEqual([again.status, again.body["active"]], [201, true]);
      assert.equal((await keysByFingerprint(db, fingerprint)).length, 1);
    }
  },
);
