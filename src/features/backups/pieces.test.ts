import assert from "node:assert/strict";
import { after, test } from "node:test";
import { testDatabase } from "../../../test/support/database.ts";
import { testProject } from "../../../test/support/fixtures.ts";
import { testOrganization } from "../../../test/support/test-platform.ts";
import { newId } from "../../kit/ids.ts";
import { addPiece, completePiece, markUnusedPieces, reusePiece, unusedPieces } from "./pieces.ts";

const { db, vault, drop } = await testDatabase();
after(drop);

test("a piece that is stored anew while its deletion waits is in use again", async () => {
  const org = await testOrganization(db, "acme");
  const { id: project_id } = await testProject({ db, vault }, org);
  const project = { org_id: org.id, project_id };
  const store = async (storage_key: string) => {
    const piece = { sha256: "a".repeat(64), storage: "disk", storage_key };
    await addPiece(db, project, piece, newId("bak"));
    await completePiece(db, project, piece, 1);
    return piece;
  };
  const keys = async () => (await unusedPieces(db, project, 10)).map(({ storage_key }) => storage_key);
  const { sha256 } = await store("first");
  await db.transaction().execute((tx) => markUnusedPieces(tx, project, 1e9));
  assert.deepEqual(await keys(), ["first"]);
  assert.equal(await reusePiece(db, project, sha256, newId("bak")), undefined);
  const second = await store("second");
  assert.deepEqual(await keys(), []);
  assert.deepEqual(await reusePiece(db, project, sha256, newId("bak")), second);
});
