import assert from "node:assert/strict";
import { test } from "node:test";
import { readConfig } from "./config.ts";
import { officialImages, parentImages } from "./parent-images.ts";

test("a language's own image wins over the base image, and that over the official one", () => {
  const imagesWith = (env: Record<string, string>) => parentImages(readConfig({ BERTH_DATA: "/tmp/x", ...env }));
  assert.deepEqual(imagesWith({}), officialImages);
  const all = imagesWith({ BERTH_BASE_IMAGE: "example/base:1", BERTH_GO_IMAGE: "golang:1.26" });
  assert.deepEqual(new Set(Object.values(all)), new Set(["example/base:1", "golang:1.26"]));
  assert.equal(all.go, "golang:1.26");
});
