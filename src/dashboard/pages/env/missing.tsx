import { useCall, useProject, useWhyNot } from "../../data/api.ts";
import { visible } from "../../data/format.ts";
import { textOf, TextField } from "../../ui/field.tsx";
import { ActionButton } from "../../ui/action-button.tsx";
import { ActionDialog } from "../../ui/action-dialog.tsx";
import { DialogButton } from "../../ui/button.tsx";
import { Section } from "../../ui/page.tsx";
import { Mono } from "../../ui/text.tsx";
import { createDatabase } from "../database/create-database.ts";

const mostAsked = 20;
const ofDatabase = /^(?:DATABASE_URL|PG[A-Z]+)$/;

/** Names the variables of the newest source's `.env.example` that are not set, and sets them. Renders nothing if none is missing. */
export function MissingVariables({ slug }: { readonly slug: string }) {
  const { names } = useMissing(slug);
  const { wantsDatabase, asked } = splitMissing(names);
  if (names.length === 0) return null;
  return (
    <Section
      title="Missing"
      lead={
        <>
          The newest source's <Mono>.env.example</Mono> names these, and nothing sets them.
        </>
      }
      actions={
        <>
          {wantsDatabase && <ActionButton {...createDatabase(slug)} />}
          {asked.length > 0 && (
            <DialogButton row="env.import" dialog={<SetThem slug={slug} names={asked} />}>
              Set them
            </DialogButton>
          )}
        </>
      }
    >
      <Names of={names} />
    </Section>
  );
}

/** What a deploy of the newest source would do, once there is one: a first push is none before it serves. */
export function useMissing(slug: string) {
  const mayRead = useWhyNot("builds.source") === undefined;
  const mayPlan = useWhyNot("builds.plan") === undefined;
  const { data: project } = useProject();
  const may = mayRead && mayPlan && project?.state === "active";
  const source = useCall("builds.source", { params: { slug } }, { enabled: may });
  const hasSource = typeof source.data?.commit === "string";
  const plan = useCall("builds.plan", { params: { slug }, body: {} }, { enabled: may && hasSource });
  return { names: plan.data?.missing_variables ?? [], isLoading: source.isLoading || plan.isLoading };
}

/** Names of variables, each in a frame. */
export function Names({ of }: { readonly of: readonly string[] }) {
  return (
    <ul className="flex flex-wrap gap-1.5">
      {of.map((name) => (
        <li key={name} className="rounded-sm border border-line bg-panel px-2 py-0.5 text-muted">
          <Mono>{visible(name)}</Mono>
        </li>
      ))}
    </ul>
  );
}

interface SetThemProps {
  readonly slug: string;
  readonly names: readonly string[];
}

function SetThem({ slug, names }: SetThemProps) {
  return (
    <ActionDialog
      row="env.import"
      title="Set the missing variables"
      submit="Save"
      input={(form) => ({ params: { slug }, body: { variables: variablesIn(form, names) } })}
    >
      <MissingFields names={names} />
    </ActionDialog>
  );
}

export function MissingFields({ names }: { readonly names: readonly string[] }) {
  const why = useWhyNot("env.import");
  return (
    <>
      <p className="text-sm text-muted">
        Values are sealed when they are stored, and shown nowhere afterwards. A field that stays empty sets nothing.
      </p>
      {names.map((name) => (
        <TextField
          key={name}
          name={name}
          label={name}
          mono
          autoComplete="off"
          disabled={why !== undefined}
          title={why}
        />
      ))}
    </>
  );
}

/** Returns the values that were given in `MissingFields`. */
export function variablesIn(form: FormData, names: readonly string[]): Record<string, string> {
  const given = names.map((name) => [name, textOf(form, name)] as const);
  return Object.fromEntries(given.filter(([, value]) => value !== ""));
}

/** Parts the names that a form asks for from those that a database sets. */
export function splitMissing(names: readonly string[]) {
  const asked = names.filter((name) => !ofDatabase.test(name));
  return { wantsDatabase: asked.length < names.length, asked: asked.slice(0, mostAsked) };
}
