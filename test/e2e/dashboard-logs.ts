import assert from "node:assert/strict";
import { test } from "node:test";
import { eventually } from "../support/eventually.ts";
import { looksRight, screens } from "./dashboard-page.ts";
import { at, choose, faults, page, platform, press, skip } from "./dashboard-stage.ts";
import { clientOf, untilServing, upload } from "./dashboard-upload.ts";

// A log of JSON lines: of the project `ledger`, which prints lines on request.
const printed = 1500;
const files = {
  "package.json": JSON.stringify({ name: "ledger", private: true, scripts: { start: "node server.js" } }),
  "server.js": `
let number = 0;
const print = () => {
  number += 1;
  const level = number % 10 === 0 ? "error" : number % 5 === 0 ? "warn" : "info";
  console.log(JSON.stringify({ level, time: Date.now(), msg: "order " + number, order: { id: number, paid: number % 3 === 0, note: "<b>" + "long ".repeat(60) + "</b>" }, user: null }));
};
require("node:http").createServer((request, response) => {
  if (request.url === "/all") for (let line = 0; line < ${printed}; line += 1) print();
  if (request.url === "/one") print();
  response.end("printed");
}).listen(process.env.PORT, process.env.HOST);
`,
};

const log = () => page.getByRole("log");
const rowOf = (number: number) =>
  log()
    .locator("[data-index] > div:has(> [data-fold])")
    .filter({ has: page.getByText(`order ${number}`, { exact: true }) });
const fieldsOf = (number: number) => rowOf(number).locator("xpath=following-sibling::*[1][@data-fields]");
const topOf = async (number: number) => Math.round((await rowOf(number).boundingBox())?.y ?? Number.NaN);
const isPaused = () => page.getByRole("button", { name: "Follow the end" }).waitFor();

// Runs in the page: returns the texts of lines and fields that begin above the end of the one before.
const overlapping = `(() => {
  const shown = Array.from(document.querySelectorAll("[role=log] [data-index] > div"), (each) => ({ text: each.textContent.slice(0, 60), box: each.getBoundingClientRect() }));
  shown.sort((one, other) => one.box.top - other.box.top || one.box.bottom - other.box.bottom);
  return shown.flatMap(({ text, box }, at) => (at > 0 && box.top < shown[at - 1].box.bottom - 1 ? [text] : []));
})()`;
const overlaps = () => page.evaluate(overlapping) as Promise<string[]>;
const nothingOverlaps = () => eventually(async () => (await overlaps()).length === 0, "no line covers another");

test("a JSON line is its level and message; it opens to its fields in its place, which pauses", { skip }, async () => {
  const client = clientOf(platform);
  await client.call("projects.create", { body: { slug: "ledger", name: "Ledger" } });
  await untilServing(client, await upload(client, "ledger", files));
  await platform.visit("ledger", "/all");
  await page.setViewportSize(screens.usual);
  await page.goto(at("/projects/ledger/logs"));
  await rowOf(printed).waitFor();
  const number = printed - 12;
  assert.match(
    (await rowOf(number).innerText()).replaceAll(/\s+/g, " "),
    /INFO order 1488 order\.id=1488 order\.paid=true/,
  );
  assert.equal(await rowOf(number).locator("b").count(), 0);
  const before = await topOf(number);
  await rowOf(number).click();
  await isPaused();
  await fieldsOf(number).getByText("order.id", { exact: true }).waitFor();
  assert.ok(Math.abs((await topOf(number)) - before) <= 1, "the line stays where it is");
  await nothingOverlaps();
  await platform.visit("ledger", "/one");
  await page.getByRole("button", { name: "1 new line" }).waitFor();
  assert.ok(Math.abs((await topOf(number)) - before) <= 1, "a new line moves nothing");
  await fieldsOf(number).waitFor();
  await looksRight(page);
  for (const isWrapped of [true, false]) {
    await page.getByRole("button", { name: "Wrap long lines", pressed: !isWrapped }).click();
    await page.getByRole("button", { name: "Wrap long lines", pressed: isWrapped }).waitFor();
    await nothingOverlaps();
  }
  await rowOf(number).scrollIntoViewIfNeeded();
  await rowOf(number).getByRole("button", { name: "Fields", expanded: true }).press("Enter");
  await fieldsOf(number).waitFor({ state: "detached" });
  await nothingOverlaps();
});

test("an open line stays open and in its place while older lines come", { skip }, async () => {
  await log().press("Home");
  const older = page.getByRole("button", { name: "Show older lines" });
  await older.waitFor();
  const first = log()
    .getByText(/^order \d+$/)
    .nth(4);
  const number = Number((await first.innerText()).slice("order ".length));
  await rowOf(number).click();
  await fieldsOf(number).waitFor();
  const before = await topOf(number);
  await older.click();
  await older.waitFor({ state: "detached" });
  await fieldsOf(number).waitFor();
  await eventually(async () => Math.abs((await topOf(number)) - before) <= 1, "the open line is where it was");
  await nothingOverlaps();
  await log().press("Home");
  await rowOf(1).waitFor();
  await log().press("End");
  await rowOf(printed).waitFor();
  await nothingOverlaps();
});

test("a field filters the log, as part of the address, and can be copied", { skip }, async () => {
  await page.goto(at("/projects/ledger/logs"));
  await rowOf(printed).waitFor();
  await rowOf(printed).click();
  await fieldsOf(printed).getByRole("button", { name: "Copy order.id" }).waitFor();
  await fieldsOf(printed).getByRole("button", { name: "Only lines with order.paid=true" }).click();
  await page.waitForURL(/[?&]field=order\.paid%3Dtrue/);
  await rowOf(printed - 3).waitFor();
  assert.equal(await rowOf(printed - 1).count(), 0);
  await page.reload();
  await rowOf(printed - 3).waitFor();
  assert.equal(await rowOf(printed - 1).count(), 0);
  await page.getByText(`${Math.floor(printed / 3)} lines`).waitFor();
  await rowOf(printed).click();
  await fieldsOf(printed).getByRole("button", { name: "Only lines with level=error" }).click();
  await page.waitForURL(/[?&]field=.*order\.paid.*level/);
  await rowOf(printed - 3).waitFor({ state: "detached" });
  await rowOf(printed).waitFor();
  await page.getByText(`${printed / 30} lines`).waitFor();
  await looksRight(page);
  await press(/^Show lines without level=error too/);
  await rowOf(printed - 3).waitFor();
  await press(/^Show lines without order\.paid=true too/);
  await rowOf(printed - 1).waitFor();
  await page.goBack();
  const many = [1, 2, 3, 4, 5, 6].map((number) => `a=${number}`);
  await faults.during([/^400 .*\/logs$/, /^400 .*\/logs\/counts$/], async (haveCome) => {
    await page.goto(at(`/projects/ledger/logs?field=${encodeURIComponent(JSON.stringify(many))}`));
    await page.getByText("give at most 5 fields at once").waitFor();
    await haveCome();
  });
  await page.goto(at("/projects/ledger/logs?field=order.id%3Dnone"));
  await page.getByText("No line has this field with this value.").waitFor();
  await press("Show lines without it too");
  await rowOf(printed).waitFor();
});

test("the counts over time choose a range, with the pointer and with keys", { skip }, async () => {
  const all = `${(printed + 1).toLocaleString("en")} lines`;
  const bars = page.getByRole("slider", { name: /^Lines over time/ });
  await page.getByText(all).waitFor();
  await page.getByText(`${printed / 10} errors`).waitFor();
  await bars.focus();
  await page.keyboard.press("End");
  await page.keyboard.press("Shift+Home");
  assert.match((await bars.getAttribute("aria-valuetext")) ?? "", /1,501 lines, 150 errors, 150 warnings$/);
  await page.keyboard.press("Escape");
  const box = await bars.boundingBox();
  assert.ok(box !== null);
  await page.mouse.move(box.x + box.width * 0.5, box.y + box.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width - 1, box.y + box.height / 2, { steps: 5 });
  await page.mouse.up();
  await page.waitForURL(/[?&]since=[^&]+&until=/);
  await rowOf(printed).waitFor();
  await page.getByText(all).waitFor();
  assert.equal(await page.getByLabel("Time", { exact: true }).inputValue(), "custom");
  await looksRight(page);
  await bars.focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("Enter");
  await page.getByText("Nothing was printed in this time.").waitFor();
  await page.goBack();
  await rowOf(printed).waitFor();
  await page.getByRole("button", { name: "Back to live" }).click();
  await page.waitForURL((url) => !url.searchParams.has("since"));
  await choose("Source", "build");
  await bars.waitFor({ state: "detached" });
});
