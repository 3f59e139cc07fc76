import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import { concerns, httpLimitsOf, pushLimitsOf, readConfig } from "./config.ts";

test("without settings the limits are those that the contract names", () => {
  const config = readConfig({});
  for (const [name, value] of Object.entries(pushLimitsOf(config)))
    assert.equal(value, limits[name as keyof typeof limits], name);
  const { readsPerMinute, writesPerMinute } = httpLimitsOf(config);
  assert.deepEqual([readsPerMinute, writesPerMinute], [limits.reads_per_minute, limits.writes_per_minute]);
});

test("each limit follows its setting", () => {
  const config = readConfig({ BERTH_READS_PER_MINUTE: "5", BERTH_TREE_MIB: "20" });
  const { pack_bytes, tree_bytes } = pushLimitsOf(config);
  assert.deepEqual([pack_bytes, tree_bytes], [5 * 1024 ** 2, 20 * 1024 ** 2]);
  assert.equal(httpLimitsOf(config).readsPerMinute, 5);
});

test("limits that belong together have one setting, and the first of the control plane's names is its own", () => {
  const { packMib, imageMib, silenceSeconds } = readConfig({});
  assert.deepEqual([packMib, imageMib, silenceSeconds], [256, 4096, 300]);
  assert.equal(readConfig({ BERTH_TREE_MIB: "65536" }).packMib, 1024);
  const names = (BERTH_HOST?: string) => {
    const { host, hosts } = readConfig({ BERTH_HOST });
    return [host, ...hosts];
  };
  assert.deepEqual(
    [names(), names("a.test"), names("a.test, b.test")],
    [["localhost"], ["a.test"], ["a.test", "b.test"]],
  );
});

test("no message about a wrong setting repeats a password, whatever else is wrong with it", () => {
  const wrong = [
    ...["postgres://berth:hunter2@", "postgres://berth:hun@ter2@db/x", "postgres://berth:hun/ter2@db/x?z=1"],
    ...["host=db password=hunter2", "postgres://berth@db/x?password=hunter2", "postgres://berth:hunter2@db:99999/x"],
    ...["postgres://berth:hunter2%zz@db/x", "postgres://berth:x@db/x?sslmode=hunter2", "https://berth:hun,ter2@db"],
    ...["berth:hunter2@registry", "postgres://berth@db/x?sslmode=require&passwort=hunter2", "smtp://u:hunter2@[::"],
  ];
  let refused = 0;
  for (const { name } of concerns.flatMap(({ settings }) => Object.values(settings)))
    for (const text of wrong) {
      const message = problemsOf({ [name]: text });
      if (message !== "") refused += 1;
      assert.doesNotMatch(message, /hun|ter2/, `${name}=${text}`);
    }
  assert.ok(refused > 100, "these are wrong for most settings");
});

test("BERTH_DATABASE_URL is a URL, also of a socket; BERTH_RELEASE_URL holds no login", () => {
  const texts = ["postgresql://db/berth", "postgres://berth:x@db:5433/berth?sslmode=require", "/run/pg berth"];
  for (const text of [...texts, "postgres://berth@/berth?host=/run/pg", "postgres://berth@%2Frun%2Fpg/berth"])
    assert.equal(readConfig({ BERTH_DATABASE_URL: text }).databaseUrl, text);
  assert.match(problemsOf({ BERTH_DATABASE_URL: "host=db" }), /must be like postgresql:/);
  assert.match(problemsOf({ BERTH_RELEASE_URL: "https://me:x@releases.test" }), /no user or password/);
});

function problemsOf(environment: Readonly<Record<string, string>>): string {
  try {
    readConfig(environment);
    return "";
  } catch (error) {
    return (error as Error).message;
  }
}
