import { ChevronRight } from "lucide-react";
import { useState } from "react";
import type { Answer } from "../../../contract/client.ts";
import { useCall } from "../../data/api.ts";
import { plural, shortCommit, visible } from "../../data/format.ts";
import { Section, View } from "../../ui/page.tsx";
import { Ago, Mono, Plain } from "../../ui/text.tsx";

type Lines = Answer<"deployments.lines">;
type ChangedFile = NonNullable<Lines["files"]>[number];

interface ChangedCodeProps {
  readonly slug: string;
  readonly from: number;
  readonly to?: number;
  /** The number of a build without a deployment, in the place of `to`. */
  readonly build?: number;
}

/** Shows the commits between two deployments, and each file's lines behind its name. */
export function ChangedCode(compared: ChangedCodeProps) {
  const { slug, ...query } = compared;
  const lines = useCall("deployments.lines", { params: { slug }, query }, { keep: true });
  return (
    <>
      <Section title="Commits">
        <View of={lines}>{(data) => <Commits commits={data.commits} />}</View>
      </Section>
      <Section
        title="Files"
        lead={lines.data?.files?.length ? plural(lines.data.files.length, "changed file") : undefined}
      >
        <View of={lines}>{(data) => <Files of={data} compared={compared} />}</View>
      </Section>
    </>
  );
}

function Commits({ commits }: Pick<Lines, "commits">) {
  if (commits.length === 0) return <p className="text-sm text-muted">Both have the same commits.</p>;
  return (
    <ul className="max-h-96 divide-y divide-line overflow-y-auto rounded-md border border-line text-sm" tabIndex={0}>
      {commits.map(({ side, commit, author, message, at }) => (
        <li key={commit} className="flex flex-wrap items-center gap-x-3 px-3 py-1.5">
          <Mono className={side === "added" ? "text-ok" : "text-bad"}>{side === "added" ? "+" : "−"}</Mono>
          <span className="sr-only">{side}</span>
          <Mono className="text-muted">{shortCommit(commit)}</Mono>
          <Plain className="min-w-0 flex-1 truncate">{message}</Plain>
          <span className="text-xs text-muted">
            <Plain>{author}</Plain> · <Ago at={at} />
          </span>
        </li>
      ))}
    </ul>
  );
}

function Files({ of: { files, complete }, compared }: { readonly of: Lines; readonly compared: ChangedCodeProps }) {
  if (files === null) return <p className="text-sm text-muted">One of the two commits is no longer kept.</p>;
  if (files.length === 0) return <p className="text-sm text-muted">The code is the same.</p>;
  return (
    <>
      <ul className="divide-y divide-line rounded-md border border-line text-sm">
        {files.map((file) => (
          <li key={file.path}>
            <Foldable file={file} compared={compared} />
          </li>
        ))}
      </ul>
      {!complete && <p className="text-sm text-muted">More differs than is shown. Each file shows its own lines.</p>}
    </>
  );
}

const signs = { added: ["+", "text-ok"], deleted: ["−", "text-bad"], changed: ["~", "text-warn"] } as const;

function Foldable({ file, compared }: { readonly file: ChangedFile; readonly compared: ChangedCodeProps }) {
  const [isOpen, setOpen] = useState(false);
  const [sign, colour] = signs[file.status];
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)} className="group">
      <summary className="target flex min-h-9 cursor-pointer items-center gap-3 px-3 py-1 hover:bg-panel focus-visible:outline-offset-[-2px]">
        <ChevronRight aria-hidden size={14} className="shrink-0 text-faint group-open:rotate-90" />
        <Mono className={colour}>{sign}</Mono>
        <span className="sr-only">{file.status}</span>
        <Mono className="min-w-0 flex-1 wrap-anywhere">{visible(file.path)}</Mono>
        <Counts file={file} />
      </summary>
      {isOpen && <FileLines file={file} compared={compared} />}
    </details>
  );
}

function Counts({ file: { binary, added, removed } }: { readonly file: ChangedFile }) {
  if (binary) return <span className="text-xs text-muted">binary</span>;
  if (added === null || removed === null) return null;
  return (
    <span className="text-xs whitespace-nowrap">
      <span className="text-ok">+{added}</span> <span className="text-bad">−{removed}</span>
    </span>
  );
}

/** Shows a file's lines. Those that the list had no room for are read alone. */
function FileLines({ file, compared }: { readonly file: ChangedFile; readonly compared: ChangedCodeProps }) {
  const { slug, ...both } = compared;
  const isAsked = file.lines === null && !file.binary;
  const query = { ...both, path: file.path };
  const alone = useCall("deployments.lines", { params: { slug }, query }, { enabled: isAsked });
  if (!isAsked) return <Patch file={file} />;
  return <View of={alone}>{({ files }) => <Patch file={files?.[0] ?? file} />}</View>;
}

const colours: Readonly<Record<string, string>> = { "+": "bg-ok/10", "-": "bg-bad/10", "@": "text-faint" };

function Patch({ file: { path, binary, lines, cut } }: { readonly file: ChangedFile }) {
  if (binary)
    return <p className="border-t border-line px-3 py-2 text-muted">A binary file: its lines are not shown.</p>;
  const shown = (lines ?? "").split("\n").slice(0, -1);
  return (
    <div className="border-t border-line">
      {shown.length > 0 && (
        <pre
          tabIndex={0}
          aria-label={`Changed lines of ${visible(path)}`}
          className="max-h-[32rem] overflow-auto py-2 text-[13px] leading-5 focus-visible:outline-offset-[-2px]"
        >
          <code className="block w-max min-w-full">
            {shown.map((line, index) => (
              <span key={index} className={`block px-3 ${colours[line.charAt(0)] ?? ""}`}>
                {visible(line)}
              </span>
            ))}
          </code>
        </pre>
      )}
      {shown.length === 0 && !cut && <p className="px-3 py-2 text-muted">No line differs.</p>}
      {cut && <p className="border-t border-line px-3 py-2 text-muted">Lines are missing: the file has too many.</p>}
    </div>
  );
}
