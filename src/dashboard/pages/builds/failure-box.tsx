import { CircleX } from "lucide-react";
import type { ReactNode } from "react";
import type { Answer } from "../../../contract/client.ts";
import { Command } from "../../ui/button.tsx";
import { Ansi } from "../../ui/ansi.tsx";
import { Tag, Prose } from "../../ui/text.tsx";

type Failure = NonNullable<Answer<"builds.get">["failure"]>;

/** Shows why something failed, what helps, and the last lines of its log. */
export function FailureBox({ failure, children }: { readonly failure: Failure; readonly children?: ReactNode }) {
  const command = /`([^`]+)`/.exec(failure.hint)?.[1];
  return (
    <section aria-label="Failure" className="overflow-hidden rounded-md border border-bad/40">
      <div className="flex gap-3 bg-bad/7 px-4 py-3.5">
        <CircleX aria-hidden size={18} className="mt-px shrink-0 text-bad" />
        <div className="min-w-0 flex-1 space-y-2">
          <p className="flex flex-wrap items-center gap-2 font-semibold">
            <span>
              <Prose>{failure.summary}</Prose>
            </span>
            <Tag>{failure.code}</Tag>
          </p>
          {failure.hint !== "" && (
            <p className="max-w-[80ch] text-sm whitespace-pre-line text-muted">
              <Prose>{failure.hint}</Prose>
            </p>
          )}
          {command !== undefined && command.includes(" ") && <Command>{command}</Command>}
          {children}
        </div>
      </div>
      {failure.log_tail.length > 0 && (
        <pre
          tabIndex={0}
          className="max-h-64 overflow-auto border-t border-bad/25 px-4 py-3 text-[12.5px] leading-5 whitespace-pre-wrap"
        >
          {failure.log_tail.map((line, index) => (
            <div key={index}>
              <Ansi text={line} />
            </div>
          ))}
        </pre>
      )}
    </section>
  );
}
