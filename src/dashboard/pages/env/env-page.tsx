import { KeyRound, Plus } from "lucide-react";
import type { Answer } from "../../../contract/client.ts";
import { useCall, useSlug } from "../../data/api.ts";
import { compareNames } from "../../data/format.ts";
import { DialogButton } from "../../ui/button.tsx";
import { FilterBox, useFilter, useHasFilter } from "../../ui/filter-box.tsx";
import { Page, Section, Empty, View } from "../../ui/page.tsx";
import { Table, type Column } from "../../ui/table.tsx";
import { Ago, Mono } from "../../ui/text.tsx";
import { createRemoval } from "../../ui/action-dialog.tsx";
import { MissingVariables, Names } from "./missing.tsx";
import { PasteDialog } from "./paste-dialog.tsx";
import { SetDialog } from "./set-dialog.tsx";

type Variable = Answer<"env.list">["variables"][number];

/** The page of environment variables. Neither the page nor the API shows a value once it is stored. */
export function EnvPage() {
  const slug = useSlug();
  const env = useCall("env.list", { params: { slug } });
  const actions = (
    <>
      <DialogButton row="env.import" dialog={<PasteDialog slug={slug} />}>
        Paste a .env
      </DialogButton>
      <DialogButton
        look="primary"
        icon={<Plus size={15} />}
        row="env.set"
        dialog={<SetDialog slug={slug} name={null} />}
      >
        Set a variable
      </DialogButton>
    </>
  );
  return (
    <Page
      title="Variables"
      lead="Values can be written, never read. A change restarts the application with the new values, without an interruption."
      actions={actions}
    >
      <View of={env}>{(data) => <Lists slug={slug} variables={data.variables} />}</View>
    </Page>
  );
}

export const variableRemoval = (slug: string) =>
  createRemoval({
    row: "env.delete",
    title: "Remove a variable",
    nameOf: ({ key }: Variable) => key,
    input: ({ key }) => ({ params: { slug, key } }),
    warning: "The application restarts without it. Earlier deployments keep their value, so a rollback brings it back.",
  });

function Lists({ slug, variables }: { readonly slug: string; readonly variables: readonly Variable[] }) {
  const text = useFilter();
  const deployments = useCall("deployments.list", { params: { slug } });
  const own = variables.filter(({ system }) => !system).toSorted((one, other) => compareNames(one.key, other.key));
  const hasFilter = useHasFilter(own.length);
  const shown = own.filter(({ key }) => key.toLowerCase().includes(text.toLowerCase()));
  const system = variables.filter((variable) => variable.system);
  return (
    <>
      {own.length === 0 ? (
        <Empty
          icon={<KeyRound size={24} />}
          title="No variables of your own yet"
          command={`berth env set --from-file .env --project ${slug}`}
        >
          Keys and settings of the application, kept out of its code. Set one, or paste a whole .env file.
        </Empty>
      ) : (
        <>
          {hasFilter && <FilterBox label="Filter variables" />}
          <Table
            caption="Variables"
            rows={shown}
            columns={columnsFor(slug, deployments.data)}
            keyOf={({ key }) => key}
          />
        </>
      )}
      <Section title="Set by the platform" lead="Every deployment gets these; they cannot be overwritten.">
        <Names of={system.map(({ key }) => key)} />
      </Section>
      <MissingVariables slug={slug} />
    </>
  );
}

/** Returns the first deployment with the current value, `next deployment` if there is none yet, or a dash if it is not in the loaded list. */
function usedSince(deployments: Answer<"deployments.list"> | undefined, changed: string | null): string {
  if (deployments === undefined || changed === null) return "–";
  const later = deployments.deployments.filter(({ created_at: at }) => at >= changed);
  if (later.length === deployments.deployments.length && deployments.next_cursor !== null) return "–";
  const first = later.filter(({ activated_at: at }) => at !== null).at(-1);
  return first === undefined ? "next deployment" : `#${first.number}`;
}

function columnsFor(slug: string, deployments: Answer<"deployments.list"> | undefined): readonly Column<Variable>[] {
  const removal = variableRemoval(slug);
  return [
    {
      head: "Key",
      grow: true,
      cell: ({ key, updated_at: at }) => (
        <span className="flex min-w-0 flex-col leading-4.5">
          <Mono className="truncate font-medium">{key}</Mono>
          {at !== null && (
            <span className="text-xs text-faint sm:hidden">
              changed <Ago at={at} /> · in use since {usedSince(deployments, at)}
            </span>
          )}
        </span>
      ),
    },
    {
      head: "In use since",
      wide: true,
      end: true,
      cell: ({ updated_at: at }) => <span className="text-muted">{usedSince(deployments, at)}</span>,
    },
    {
      head: "Changed",
      wide: true,
      end: true,
      cell: ({ updated_at: at }) => <span className="text-muted">{at !== null && <Ago at={at} />}</span>,
    },
    {
      head: "",
      end: true,
      cell: (variable) => (
        <span className="inline-flex items-center">
          <DialogButton look="quiet" row="env.set" dialog={<SetDialog slug={slug} name={variable.key} />}>
            Replace
          </DialogButton>
          {removal.button(variable)}
        </span>
      ),
    },
  ];
}
