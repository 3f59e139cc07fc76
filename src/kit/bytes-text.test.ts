import assert from "node:assert/strict";
import { test } from "node:test";
import { bytesText } from "./bytes-text.ts";

test("sizes have binary units", () => {
  assert.deepEqual([0, 1023, 1024, 1_572_864, 200 * 1024 ** 3].map(bytesText), [
    "0 B",
    "1023 B",
    "1.0 KiB",
    "1.5 MiB",
    "200 GiB",
  ]);
});
