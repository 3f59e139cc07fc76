// Drawn with other journey files: it starts a whole platform and builds applications of eight languages.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { runOk } from "../../src/kit/exec.ts";
import type { Result } from "../../src/contract/routes.ts";
import { cliUser, type CliUser } from "../support/cli.ts";
import { missingForTemplate } from "../support/missing-for-template.ts";
import { startPlatform, type TestPlatform } from "./platform.ts";

describe("a template", () => {
  let platform: TestPlatform;
  let user: CliUser;
  before(async () => {
    platform = await startPlatform();
    user = await cliUser({ url: platform.api, token: platform.token });
  });
  after(async () => {
    await user?.[Symbol.asyncDispose]();
    await platform?.destroy();
  });

  const said = { nextjs: /<h1>Notes/, django: /<h1>Notes/, static: /Hello from a static site/ } as const;
  for (const [name, skip] of Object.entries(missingForTemplate))
    test(`${name} is live after one command`, { skip }, async () => {
      const slug = `of-${name}`;
      const { exitCode, stdout, stderr } = await user.berth(["create", slug, "--template", name]);
      assert.equal(exitCode, 0, stdout + stderr);
      assert.match(stdout, new RegExp(`Live: .*//${slug}\\.`));
      const { status, body } = await platform.visit(slug);
      assert.equal(status, 200, body);
      assert.match(body, said[name as keyof typeof said] ?? /^Hello from/);
    });

  test("is cloned with the login's password, and pushed from the clone", async () => {
    const cloned = await user.berth(["clone", "of-node"]);
    assert.equal(cloned.exitCode, 0, cloned.stderr);
    const push = { file: "git", args: ["push", "berth", "HEAD:refs/heads/copy"] };
    await runOk(push, { cwd: join(user.home, "of-node"), env: user.env });
  });

  test("is listed with its files, and one that does not exist is refused before anything is created", async () => {
    const { templates } = (await platform.call<Result<"templates.list">>("GET", "/v1/templates")).body;
    assert.equal(templates.length, 10);
    for (const { name, files } of templates) assert.ok(files.length > 0, name);
    const { exitCode, stderr } = await user.berth(["create", "none", "--template", "cobol"]);
    assert.equal(exitCode, 2, stderr);
    assert.match(stderr, /There are node, nextjs/);
    assert.equal((await platform.call("GET", "/v1/projects/none")).status, 404);
  });
});
