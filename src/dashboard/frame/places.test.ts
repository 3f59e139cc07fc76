import assert from "node:assert/strict";
import { test } from "node:test";
import { matchRank } from "./places.ts";

test("a query's letters begin words of what is found, so that a product's name does not find an unrelated action", () => {
  assert.equal(matchRank("shop: Roll back …", "roll"), 2);
  for (const query of ["rb", "rolb", "srb"]) assert.equal(matchRank("shop: Roll back … Action", query), 1, query);
  for (const label of [
    "Remove a variable …",
    "Restart …",
    "Detach a domain …",
    "Restore a backup …",
    "Delete the project …",
  ])
    assert.equal(matchRank(`demo-shop: ${label} Action`, "redis"), 0, label);
});
