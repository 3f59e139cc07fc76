import assert from "node:assert/strict";
import type { Client } from "../../src/contract/client.ts";
import { looksRight } from "./dashboard-page.ts";
import { at, faults, page, press } from "./dashboard-stage.ts";

/** Uploads a file into a folder of the project `store` three times: new, refused, and in the place of the first. */
export async function uploadsFiles(client: Client): Promise<void> {
  const dialog = page.getByRole("dialog");
  await page.goto(at("/projects/store/storage?path=papers"));
  const send = async (text: string, replaces: boolean) => {
    await press("Upload");
    await dialog
      .getByLabel("Files")
      .setInputFiles({ name: "note.txt", mimeType: "text/plain", buffer: Buffer.from(text) });
    if (replaces) await dialog.getByLabel(/^Replace what is there/).check();
    await dialog.getByRole("button", { name: "Upload" }).click();
  };
  await send("one", false);
  await dialog.getByText("There was nothing to replace.").waitFor();
  await looksRight(page);
  await dialog.getByRole("button", { name: "Close", exact: true }).first().click();
  await page.getByText("note.txt").waitFor();
  await faults.during([/^409 .*disk\/file/], async () => {
    await send("two", false);
    await dialog
      .getByRole("alert")
      .getByText(/papers\/note\.txt is there, a file of 3 B/)
      .waitFor();
  });
  await page.keyboard.press("Escape");
  await send("two", true);
  await dialog.getByRole("link", { name: /^\.restored\/uploaded_/ }).click();
  await page.getByRole("link", { name: "papers" }).last().waitFor();
  const { base64 } = await client.call("disk.read", { params: { slug: "store" }, query: { path: "papers/note.txt" } });
  assert.equal(Buffer.from(base64, "base64").toString(), "two");
}
