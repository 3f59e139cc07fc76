import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { withoutDocker } from "../../../test/support/docker-engine.ts";
import { startTestRegistry, withoutRegistry, type TestRegistry } from "../../../test/support/registry.ts";
import { attempt, imageOf } from "../../ports/builder.suite.ts";
import type { BuildRequest } from "../../ports/builder.ts";
import { admitLogins, loginFor } from "./registry-access.ts";
import { makeTestDockerBuilder, type TestDockerBuilder } from "../../../test/support/docker-builder.ts";

// Drawn with other container files: what a runtime and a builder promise is shown by those of processes in every run.

it("a password goes to the registry that it is for, and into no private network that is not allowed", async () => {
  const login = (host: string) => ({ host, username: "u", password: host });
  const logins = [login("docker.io"), login("10.0.0.7:5000"), login("192.168.1.9:5000"), login("localhost:5000")];
  const { admitted, refused } = await admitLogins(logins, ["192.168.1.9:5000"]);
  assert.deepEqual(
    [admitted, refused].map((all) => all.map(({ host }) => host)),
    [
      ["docker.io", "192.168.1.9:5000"],
      ["10.0.0.7:5000", "localhost:5000"],
    ],
  );
  assert.equal(loginFor(admitted, "registry-1.docker.io")?.password, "docker.io");
  assert.equal(loginFor(admitted, "192.168.1.9:5001"), undefined);
});

describe("registries that want a login", { skip: withoutDocker || withoutRegistry }, () => {
  let registry: TestRegistry;
  let test: TestDockerBuilder;
  const busybox = { path: "bin/busybox", text: readFileSync("/bin/busybox"), mode: 0o755 };
  const image = { members: [busybox], config: { Cmd: ["/bin/busybox", "true"], ExposedPorts: { "8080/tcp": {} } } };
  before(async () => {
    registry = await startTestRegistry();
    test = await makeTestDockerBuilder({ provided: [], privateRegistries: [registry.host], caFile: registry.caFile });
  });
  after(async () => {
    await test?.close();
    await registry?.close();
  });

  const build = (from: string, request: Partial<BuildRequest>) =>
    attempt(test.builder, { Dockerfile: `FROM ${registry.host}/${from}\n` }, request);
  const logins = () => [{ host: registry.host, username: registry.username, password: registry.password }];
  const codeOf = async (pending: ReturnType<typeof build>) => {
    const { outcome } = await pending;
    return outcome.outcome === "failed" ? outcome.failure.code : outcome.outcome;
  };

  it("an organization's login pulls its private images, and no other organization's build gets them by tag or digest", async () => {
    const digest = await registry.push("acme/shop:1", image);
    const { outcome: refused } = await build("acme/shop:1", { org_id: "org_other" });
    assert.ok(refused.outcome === "failed" && refused.failure.code === "parent_image_unavailable");
    assert.match(refused.failure.hint, new RegExp(`berth registries add ${registry.host} `));
    const { outcome, lines } = await build("acme/shop:1", { org_id: "org_acme", registries: logins() });
    const built = imageOf(outcome);
    assert.deepEqual([built.port, built.web_command], [8080, "/bin/busybox true"]);
    assert.ok(
      lines.some((line) => line.includes(digest)),
      lines.join("\n"),
    );
    assert.ok(!lines.join("\n").includes(registry.password));
    const wrong = [{ ...logins()[0], password: "wrong" }] as ReturnType<typeof logins>;
    for (const from of ["acme/shop:1", `acme/shop@${digest}`]) {
      assert.equal(await codeOf(build(from, { org_id: "org_other" })), "parent_image_unavailable", from);
      const other = { org_id: "org_third", registries: wrong };
      assert.equal(await codeOf(build(from, other)), "parent_image_unavailable", from);
    }
    // Without the login, an organization cannot use even the image that it pulled earlier.
    assert.equal(await codeOf(build(`acme/shop@${digest}`, { org_id: "org_acme" })), "parent_image_unavailable");
  });

  it("a login is tried before it is stored, and one that cannot be tried is no wrong one", async () => {
    const [login] = logins();
    assert.ok(login);
    const tried = (more: object) => test.builder.tryLogin?.({ ...login, ...more });
    assert.equal(await tried({}), "accepted");
    assert.equal(await tried({ password: "wrong" }), "refused");
    assert.equal(await tried({ host: "127.0.0.1:9" }), "unknown");
  });

  it("an image of another kind of machine is refused by its platform", async () => {
    await registry.push("acme/foreign:1", { ...image, architecture: "s390x" });
    const { outcome } = await build("acme/foreign:1", { org_id: "org_acme", registries: logins() });
    assert.ok(outcome.outcome === "failed");
    assert.equal(outcome.failure.code, "image_platform_mismatch");
    assert.match(outcome.failure.summary, /linux\/s390x/);
  });
});
