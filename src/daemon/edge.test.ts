import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLog } from "../kit/log.ts";
import { readConfig } from "./config.ts";
import { createEdge, type EdgeFoundation } from "./edge.ts";

const lacking = { haproxy: null, setpriv: null };
const advice = { part: "HAProxy 2.6 or newer", effect: "", command: "sudo apt-get install haproxy", required: true };

function refusalOf(environment: Record<string, string>, missing: EdgeFoundation["parts"]["missing"]): string {
  const config = { ...readConfig(environment), isRoot: false };
  try {
    createEdge({ config, parts: { ...lacking, missing }, log: silentLog });
  } catch (error) {
    return (error as Error).message;
  }
  return "";
}

test("a machine without HAProxy is told how to get it", () => {
  assert.match(
    refusalOf({}, [advice]),
    /could not be fetched\. Run: sudo apt-get install haproxy\. Or set BERTH_HAPROXY/,
  );
});

test("a BERTH_HAPROXY that is no HAProxy 2.6 or newer is named", () => {
  assert.match(refusalOf({ BERTH_HAPROXY: "/bin/true" }, [advice]), /^BERTH_HAPROXY=\/bin\/true is not a HAProxy/);
});
