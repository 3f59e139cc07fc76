import assert from "node:assert/strict";
import { copyFileSync, cpSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { createLocalServer } from "./server.ts";
import { makeTestPlace, missingPart } from "./test-fixture.ts";

const update = "a server notices that an update has replaced its program, once the new one works";
test(update, { skip: missingPart }, async (t) => {
  const place = makeTestPlace();
  t.after(() => place.remove());
  const binDir = join(dirname(place.runBase), "pg/bin");
  mkdirSync(binDir, { recursive: true, mode: 0o755 });
  const { binDir: installed, bwrap, uidBase: uid } = place.options;
  for (const name of readdirSync(installed)) copyFileSync(join(installed, name), join(binDir, name));
  const isNeeded = (path: string) => !path.endsWith("/bitcode");
  cpSync(join(dirname(installed), "lib"), join(dirname(binDir), "lib"), { recursive: true, filter: isNeeded });
  const [dir, socketDir] = [join(place.dir, "one"), join(place.runBase, "one")];
  mkdirSync(dir, { recursive: true });
  const server = createLocalServer({ binDir, bwrap, dir, socketDir, port: null, uid });
  t.after(() => server.stop());
  const replaceBy = (program: string) => {
    rmSync(join(binDir, "postgres"));
    copyFileSync(program, join(binDir, "postgres"));
  };
  await server.ensure();
  assert.equal(await server.isReplaced(), false);
  replaceBy("/bin/false");
  assert.equal(await server.isReplaced(), false, "its package is being unpacked");
  replaceBy(join(installed, "postgres"));
  assert.equal(await server.isReplaced(), true);
  await server.stop();
  await server.ensure();
  assert.equal(await server.isReplaced(), false);
});
