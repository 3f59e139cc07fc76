import assert from "node:assert/strict";
import { test } from "node:test";
import { platformBeside } from "../../../test/support/platform-double.ts";
import { builderDouble } from "../../../test/support/port-doubles.ts";
import { sharedApi } from "../../../test/support/test-platform.ts";
import { diskTask } from "./disk-task.ts";

const api = await sharedApi();

test("the status names a disk on which builds are refused, also when it is not the platform's own", async () => {
  const details = async (isShortOfSpace: () => Promise<boolean>) => {
    const task = diskTask(platformBeside(api, { ports: { builder: builderDouble({ isShortOfSpace }) } }));
    const { detail } = await task.run(new AbortController().signal);
    await task.settle?.();
    return detail ?? "";
  };
  assert.match(await details(async () => true), /builds are refused/);
  assert.doesNotMatch(await details(async () => false), /refused/);
  assert.doesNotMatch(await details(() => Promise.reject(new Error("the engine is down"))), /refused/);
});
