import { useState } from "react";
import type { CallInput } from "../../contract/client.ts";
import type { RouteName } from "../../contract/routes.ts";
import { useCall } from "../data/api.ts";
import { compareNames } from "../data/format.ts";
import { ConfirmAction } from "../ui/action-dialog.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { SelectField } from "../ui/field.tsx";
import type { OfProject } from "./actions.ts";
import { useDone, type Place } from "./plain-action.tsx";

interface Removal<N extends RouteName> {
  readonly row: N;
  readonly title: string;
  readonly submit: string;
  readonly label: string;
  /** Returns the names of the things; undefined until they are loaded. */
  readonly useNames: (slug: string) => readonly string[] | undefined;
  /** The text to type instead of the thing's name. */
  readonly typed?: (slug: string) => string;
  readonly input: (slug: string, name: string) => CallInput<N>;
  readonly text: string;
  readonly to: Place;
}

/** Creates the dialog that removes one of several things. The user chooses it and types its name to confirm. */
export function removal<N extends RouteName>({ label, useNames, typed, input, text, to, ...rest }: Removal<N>) {
  return function RemovalDialog(props: OfProject) {
    const { slug, onClose } = props;
    const done = useDone(props);
    const names = useNames(slug)?.toSorted(compareNames);
    const [chosen, choose] = useState<string>();
    if (names === undefined) return null;
    const name = chosen ?? names[0];
    if (name === undefined)
      return (
        <Dialog title={rest.title} onClose={onClose}>
          <p className="text-sm text-muted">{slug} has none.</p>
        </Dialog>
      );
    const asked = { ...rest, typed: typed?.(slug) ?? name, input: input(slug, name), onDone: () => done(to), onClose };
    return (
      <ConfirmAction {...asked} key={name}>
        <div className="flex flex-col gap-4">
          <SelectField
            name="name"
            label={label}
            value={name}
            onChange={(event) => choose(event.target.value)}
            options={names.map((each) => [each, each])}
          />
          <p>{text}</p>
        </div>
      </ConfirmAction>
    );
  };
}

export const Detach = removal({
  row: "domains.detach",
  title: "Detach a domain",
  submit: "Detach",
  label: "Hostname",
  useNames: (slug) => useCall("domains.list", { params: { slug } }).data?.domains.map(({ hostname }) => hostname),
  input: (slug, hostname) => ({ params: { slug, hostname } }),
  text: "It stops being served at once. The project's other addresses stay.",
  to: "domains",
});

export const RemoveVariable = removal({
  row: "env.delete",
  title: "Remove a variable",
  submit: "Remove",
  label: "Key",
  useNames: (slug) => {
    const { data } = useCall("env.list", { params: { slug } });
    return data?.variables.flatMap(({ key, system }) => (system ? [] : [key]));
  },
  input: (slug, key) => ({ params: { slug, key } }),
  text: "The application restarts without it. Earlier deployments keep their value, so a rollback brings it back.",
  to: "variables",
});

export const DeleteJob = removal({
  row: "cron.delete",
  title: "Delete a cron job",
  submit: "Delete",
  label: "Job",
  useNames: (slug) => useCall("cron.list", { params: { slug } }).data?.jobs.map(({ name }) => name),
  input: (slug, name) => ({ params: { slug, name } }),
  text: "The job and the list of its runs are deleted.",
  to: "cron",
});
