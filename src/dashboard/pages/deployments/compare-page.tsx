import { getRouteApi } from "@tanstack/react-router";
import { ArrowLeftRight, GitCompareArrows } from "lucide-react";
import type { ReactNode } from "react";
import type { Answer } from "../../../contract/client.ts";
import { useCall } from "../../data/api.ts";
import { firstLine, shortCommit } from "../../data/format.ts";
import { IconButton } from "../../ui/button.tsx";
import { Select } from "../../ui/field.tsx";
import { Page, Section } from "../../ui/page.tsx";
import { State } from "../../ui/status.tsx";
import { Ago, Mono, Plain } from "../../ui/text.tsx";
import { Empty, View } from "../../ui/view.tsx";
import { ChangedCode } from "./changed-code.tsx";

type Comparison = Answer<"deployments.compare">;
type Side = Comparison["from"];

export interface CompareSearch {
  readonly from?: number;
  readonly to?: number;
}

const route = getRouteApi("/projects/$slug/compare");

/** The page that compares two deployments: code, names of variables, settings. */
export function ComparePage() {
  const { slug } = route.useParams();
  const { from, to } = route.useSearch();
  const compared = useCall("deployments.compare", { params: { slug }, query: { from, to } }, { keep: true });
  return (
    <Page title="Compare deployments">
      <View of={compared}>
        {(data) => (
          <>
            <Sides comparison={data} />
            <Differences comparison={data} />
          </>
        )}
      </View>
    </Page>
  );
}

function Sides({ comparison: { from, to } }: { readonly comparison: Comparison }) {
  const { slug } = route.useParams();
  const navigate = route.useNavigate();
  const { data } = useCall("deployments.list", { params: { slug } });
  const numbers = data?.deployments.map(({ number }) => number) ?? [from.number, to.number];
  const set = (search: CompareSearch) =>
    void navigate({ search: { from: from.number, to: to.number, ...search }, replace: true });
  return (
    <div className="grid items-center gap-3 md:grid-cols-[1fr_auto_1fr]">
      <SideBox label="From" side={from} numbers={numbers} onNumber={(number) => set({ from: number })} />
      <IconButton
        label="Swap the two"
        className="justify-self-center"
        onClick={() => set({ from: to.number, to: from.number })}
      >
        <ArrowLeftRight size={15} className="max-md:rotate-90" />
      </IconButton>
      <SideBox label="To" side={to} numbers={numbers} onNumber={(number) => set({ to: number })} />
    </div>
  );
}

interface SideBoxProps {
  readonly label: string;
  readonly side: Side;
  readonly numbers: readonly number[];
  readonly onNumber: (number: number) => void;
}

function SideBox({ label, side, numbers, onNumber }: SideBoxProps) {
  return (
    <div className="flex min-w-0 flex-col gap-2 rounded-md border border-line p-4">
      <div className="flex items-center gap-3 text-sm">
        <Select
          aria-label={`${label} deployment`}
          className="max-w-24"
          value={side.number}
          onChange={(event) => onNumber(Number(event.target.value))}
        >
          {numbers.map((number) => (
            <option key={number} value={number}>
              #{number}
            </option>
          ))}
        </Select>
        <State of={side.status} />
        <span className="ml-auto text-muted">
          <Ago at={side.activated_at ?? side.created_at} />
        </span>
      </div>
      <p className="truncate text-sm">
        <Mono className="text-muted">{shortCommit(side.commit)}</Mono> <Plain>{firstLine(side.message)}</Plain>
      </p>
    </div>
  );
}

function Differences({ comparison }: { readonly comparison: Comparison }) {
  const { slug } = route.useParams();
  const { from, to, files, variables, settings } = comparison;
  const { added, removed, changed } = variables;
  const keys = added.length + removed.length + changed.length;
  if (files?.length === 0 && keys === 0 && settings.length === 0)
    return (
      <Empty icon={<GitCompareArrows size={24} />} title="Nothing differs">
        Both have the same code, the same variables and the same settings.
      </Empty>
    );
  return (
    <>
      {files?.length !== 0 && <ChangedCode slug={slug} from={from.number} to={to.number} />}
      <Section title="Variables" lead="Only their keys; values are shown nowhere.">
        <Lines none="All variables are the same.">
          {added.map((key) => (
            <Line key={key} sign="+" text={key} />
          ))}
          {removed.map((key) => (
            <Line key={key} sign="−" text={key} />
          ))}
          {changed.map((key) => (
            <Line key={key} sign="~" text={key} />
          ))}
        </Lines>
      </Section>
      <Section title="Settings">
        <Lines none="Port and health path are the same.">
          {settings.map(({ name, from, to }) => (
            <Line key={name} sign="~" text={`${name}: ${from ?? "unset"} → ${to ?? "unset"}`} />
          ))}
        </Lines>
      </Section>
    </>
  );
}

function Lines({ none, children }: { readonly none: string; readonly children: readonly ReactNode[] | ReactNode[][] }) {
  const lines = children.flat();
  if (lines.length === 0) return <p className="text-sm text-muted">{none}</p>;
  return (
    <ul className="max-h-96 overflow-y-auto rounded-md border border-line py-1.5" tabIndex={0}>
      {lines}
    </ul>
  );
}

const signs = {
  "+": ["text-ok", "added"],
  "−": ["text-bad", "removed"],
  "~": ["text-warn", "changed"],
} as const;

function Line({ sign, text }: { readonly sign: keyof typeof signs; readonly text: string }) {
  const [colour, word] = signs[sign];
  return (
    <li className="flex gap-3 px-3 py-0.5 text-sm hover:bg-panel">
      <span aria-hidden className={`font-mono ${colour}`}>
        {sign}
      </span>
      <span className="sr-only">{word}</span>
      <Mono className="min-w-0 wrap-anywhere">{text}</Mono>
    </li>
  );
}
