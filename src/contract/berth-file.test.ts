import assert from "node:assert/strict";
import { test } from "node:test";
import { readBerthFile } from "./berth-file.ts";

const problemsOf = (text: string) => {
  const read = readBerthFile(text);
  return "problems" in read ? read.problems : assert.fail("it was read");
};

test("everything is optional, and folders lose what is not needed", () => {
  assert.deepEqual(readBerthFile("{}"), { file: {} });
  const file = {
    root: "./apps/web/",
    crons: [{ path: "/tick", schedule: "*/5 * * * *" }],
    processes: { worker: "node w.js" },
  };
  assert.deepEqual(readBerthFile(JSON.stringify(file)), { file: { ...file, root: "apps/web" } });
});

test("a problem names its field and its line, or the line where the JSON ends to be any", () => {
  const cases = [
    ['{\n  "port": "3000"\n}', /berth\.json: port \(line 2\): /],
    ['{\n  "strat": "x"\n}', /strat \(line 2\) is not a known field; the fields are root, build, start/],
    [
      '{\n  "crons": [{ "path": "/x", "schedule": "daily" }]\n}',
      /crons\.0\.schedule \(line 2\): must have five fields/,
    ],
    ['{"processes": {"web": "x"}}', /for web and release, use the fields `start` and `release`/],
    ['{\n  "port": 1,\n}', /not valid JSON, on line 3/],
    ...["..", "../x", "a/../../x", "a/.."].map(
      (path) =>
        [JSON.stringify({ watch: [path] }), /watch\.0 \(line 1\): must not lead out of the repository/] as const,
    ),
    ['{"root": "../up"}', /root \(line 1\): must be a folder inside/],
  ] as const;
  for (const [text, expected] of cases) assert.match(problemsOf(text).join("\n"), expected);
});

test("a file names as many process types as a Procfile may, and no more", () => {
  const types = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, "x"]));
  const withTypes = (count: number) => JSON.stringify({ processes: types(count) });
  assert.ok("file" in readBerthFile(withTypes(16)));
  assert.deepEqual(problemsOf(withTypes(17)), ["berth.json: processes (line 1): must have at most 16 process types."]);
});

test("the persistent folder is one of its own: no folder of the system, and none below devices and kernel files", () => {
  const isFine = (storage: string) => "file" in readBerthFile(JSON.stringify({ storage }));
  for (const fine of ["/data", "/app/uploads", "/var/lib/app", "/usr/share/x.y", "/devices", "/appdata"])
    assert.ok(isFine(fine), fine);
  const system = ["app", "boot", "dev", "etc", "home", "lib", "lib64", "opt", "proc", "root", "run", "sbin", "bin"];
  const bad = [
    ...system,
    "sys",
    "tmp",
    "usr",
    "var",
    "dev/shm",
    "proc/self",
    "sys/fs",
    "data/",
    "a/../b",
    "a/..",
    "./a",
  ];
  for (const path of ["", "data", ...bad.map((each) => `/${each}`)]) assert.ok(!isFine(path), path);
});
