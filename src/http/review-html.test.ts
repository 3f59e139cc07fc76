import assert from "node:assert/strict";
import { test } from "node:test";
import { reviewHtml, type ShownReview } from "./review-html.ts";

const hash = "a".repeat(40);
const unseen = { number: 9, status: null, reason: null, report: null, has_ended: false, problem: null };
const shown = (more: Partial<ShownReview> = {}) =>
  reviewHtml({
    ...{ live: { number: 3, commit: hash }, commit: "b".repeat(40), url: null, number: 9, project: "shop", nonce: "n" },
    ...{
      difference: { place: "prj_1", counts: { added: 1, removed: 0 }, files: ["<b>.js"] },
      isRehearsed: false,
      rehearsal: null,
    },
    ...more,
  });

test("what would change is told, and nothing of it is markup", () => {
  const html = shown();
  assert.match(html, /deployment 3, <code>aaaaaaaa<\/code>.*<code>bbbbbbbb<\/code> \(1 new commit\)/s);
  const moved = shown({ difference: { place: "prj_1", counts: { added: 2, removed: 3 }, files: [] } });
  assert.match(moved, / \(2 new commits, without 3 that serve now\)/);
  assert.match(html, /<pre>&lt;b&gt;\.js<\/pre>/);
  assert.match(html, /href="\/projects\/shop\/compare\?from=3&amp;to=9"/);
});

test("what is not known is said", () => {
  assert.match(shown({ difference: null }), /not known: one of the commits is no longer stored/);
  assert.doesNotMatch(shown({ live: null, difference: null }), /not known|compare/);
});

test("each state of the rehearsal is told, and it can be asked for until it has a result", () => {
  const of = (more: object) => shown({ rehearsal: { ...unseen, ...more } });
  const report = { seconds: 1, exit_code: 0, tables: [], further_tables: 0 };
  assert.match(shown(), /Not rehearsed\..*value="rehearse"/s);
  assert.match(of({}), /under way/);
  assert.match(of({ has_ended: true, problem: "No room." }), /Not rehearsed: No room\..*value="rehearse"/s);
  assert.match(of({ has_ended: true, status: "skipped", reason: "No database." }), /Not rehearsed: No database\./);
  assert.match(
    of({ has_ended: true, status: "failed", reason: "It ended with 3." }),
    /would fail again: It ended with 3\./,
  );
  assert.match(of({ has_ended: true, status: "passed", report }), /It passed\..*No table was changed\./s);
  for (const status of ["passed", "failed"]) assert.doesNotMatch(of({ has_ended: true, status }), /value="rehearse"/);
  assert.doesNotMatch(shown({ isRehearsed: true }), /rehears/i);
});
