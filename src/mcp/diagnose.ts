import type { Answer } from "../contract/client.ts";
import { fit, lastLines } from "./fit.ts";
import { inToolWords, toolCallFor } from "./in-tool-words.ts";
import type { ToolAnswer } from "./present.ts";
import type { Session } from "./session.ts";
import { untrusted, untrustedNotice, visibleIn, visibleLines } from "./untrusted.ts";

const tailCharacters = 8000;

type Diagnosis = Answer<"diagnosis.get">;
type Finding = Diagnosis["findings"][number];

/** Returns what is wrong with a project: first the verdict with the next call to make, then the platform's hint, the project's state and its log. */
export async function diagnose(session: Session, slug: string): Promise<ToolAnswer> {
  const params = { slug };
  const { client, signal } = session;
  const { findings, log, unread, ...state } = await session.working("looking at the project", () =>
    client.call("diagnosis.get", { params, signal }),
  );
  const seen = findings.map(({ failure: _failure, next, ...finding }) => ({
    ...finding,
    next: next && toolCallFor(next),
  }));
  const { text, notes, document } = fit(visibleIn({ findings: seen, ...state }, 2000), 24_000);
  const report = [untrusted("the platform's state of the project", text), ...notes].join("\n");
  const sentence = verdict(findings, state.project);
  const parts = [sentence, hintOf(findings), report, logTail(log), missing(unread)];
  return {
    text: parts.filter((part) => part !== "").join("\n\n"),
    structured: { notice: untrustedNotice, sentence, result: document, log: visibleIn(log, 500), notes },
    isError: false,
  };
}

function verdict(findings: readonly Finding[], { health }: Diagnosis["project"]): string {
  const [first] = findings;
  if (first === undefined) return `No problem was found. ${health?.sentence ?? ""}`.trim();
  const next = first.next === null ? undefined : toolCallFor(first.next);
  const step = next === undefined ? "" : ` Call ${next.tool} with ${JSON.stringify(next.arguments)}.`;
  const others = findings.length === 1 ? "" : ` ${findings.length - 1} more below.`;
  return `Likely cause: ${first.code} (${first.severity}). Next step: ${first.advice}${step}${others}`;
}

/** Returns the platform's hint for the first failure; it comes before everything else, because it says what to do. */
function hintOf([first]: readonly Finding[]): string {
  if (first?.failure === undefined || first.failure === null) return "";
  const { summary, hint } = first.failure;
  return untrusted(
    "the platform, which may quote a command's output",
    visibleLines(`${summary} ${inToolWords(hint)}`, 2000),
  );
}

function logTail({ source, lines }: Diagnosis["log"]): string {
  if (lines.length === 0) return "";
  const shown = lines.map((line) => `${line.at ?? ""} ${visibleLines(line.text, 500)}`.trim());
  const whose = source === "build" ? "the newest build's log" : "the application's log";
  return untrusted(`${whose}, its newest lines`, lastLines(shown.join("\n"), tailCharacters).text);
}

function missing(unread: Diagnosis["unread"]): string {
  const names = unread.map(({ route: name, code }) => `${name} (${code})`);
  return names.length === 0
    ? ""
    : `Not included, because this token may not read them or the platform could not: ${names.join(", ")}.`;
}
