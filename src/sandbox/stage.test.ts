import assert from "node:assert/strict";
import { test } from "node:test";
import { stageTable, stageWords } from "./stage.ts";

test("a stage lists its mounts as fstab has it, whatever characters a path holds", () => {
  assert.equal(
    stageTable("/mnt", ["/data/my app", "/data/a\\b#c\td"], null),
    "/data/my\\040app /mnt/0 none rbind 0 0\n/data/a\\134b\\043c\\011d /mnt/1 none rbind 0 0\n",
  );
});

test("with a layer the first source lies below it", () => {
  const layer = "berth /mnt/layer tmpfs nodev,nosuid,size=1024 0 0\n";
  assert.equal(
    stageTable("/mnt", ["/data/app", "/data/storage"], layer),
    `${layer}/data/app /mnt/lower none rbind 0 0\n/data/storage /mnt/1 none rbind 0 0\n`,
  );
});

test("a stage hides no folder that it needs", () => {
  const placeOf = (...programs: string[]) => {
    const { staged } = stageWords({ sources: [import.meta.dirname], layer: null, owner: null, programs });
    return (staged[0] as string).slice(0, -"/0".length);
  };
  const first = placeOf();
  assert.notEqual(placeOf(`${first}/bin/bwrap`), first);
  assert.equal(placeOf(`${first}-other/bin/bwrap`), first);
});
