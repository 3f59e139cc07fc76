import { useState } from "react";
import type { CallInput } from "../../contract/client.ts";
import type { RouteName } from "../../contract/routes.ts";
import { useCall } from "../data/api.ts";
import { compareNames } from "../data/format.ts";
import { ConfirmAction } from "../ui/action-dialog.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { SelectField } from "../ui/field.tsx";
import type { OfProject } from "./actions.ts";
import { useDone } from "./use-done.ts";

interface RemovalProps<N extends RouteName> extends OfProject {
  readonly row: N;
  readonly title: string;
  readonly submit: string;
  readonly label: string;
  /** Undefined until they are loaded. */
  readonly names: readonly string[] | undefined;
  readonly input: (name: string) => CallInput<N>;
  readonly text: string;
  readonly onDone: () => void;
}

/** Removes one of several things. The user chooses it and types its name to confirm. */
export function Removal<N extends RouteName>({ label, names, input, text, slug, ...rest }: RemovalProps<N>) {
  const [chosen, choose] = useState<string>();
  if (names === undefined) return null;
  const sorted = names.toSorted(compareNames);
  const name = chosen ?? sorted[0];
  if (name === undefined)
    return (
      <Dialog title={rest.title} onClose={rest.onClose}>
        <p className="text-sm text-muted">{slug} has none.</p>
      </Dialog>
    );
  return (
    <ConfirmAction {...rest} key={name} typed={name} input={input(name)}>
      <div className="flex flex-col gap-4">
        <SelectField
          name="name"
          label={label}
          value={name}
          onChange={(event) => choose(event.target.value)}
          options={sorted.map((each) => [each, each])}
        />
        <p>{text}</p>
      </div>
    </ConfirmAction>
  );
}

/** Detaches one of the hostnames. */
export function Detach(props: OfProject) {
  const { slug } = props;
  const done = useDone(props);
  const { data } = useCall("domains.list", { params: { slug } });
  return (
    <Removal
      {...props}
      row="domains.detach"
      title="Detach a domain"
      submit="Detach"
      label="Hostname"
      names={data?.domains.map(({ hostname }) => hostname)}
      input={(hostname) => ({ params: { slug, hostname } })}
      text="It stops being served at once. The project's other addresses stay."
      onDone={() => done("domains")}
    />
  );
}

/** Removes one of the variables. */
export function RemoveVariable(props: OfProject) {
  const { slug } = props;
  const done = useDone(props);
  const { data } = useCall("env.list", { params: { slug } });
  return (
    <Removal
      {...props}
      row="env.delete"
      title="Remove a variable"
      submit="Remove"
      label="Key"
      names={data?.variables.flatMap(({ key, system }) => (system ? [] : [key]))}
      input={(key) => ({ params: { slug, key } })}
      text="The application restarts without it. Earlier deployments keep their value, so a rollback brings it back."
      onDone={() => done("variables")}
    />
  );
}

/** Deletes one of the cron jobs. */
export function DeleteJob(props: OfProject) {
  const { slug } = props;
  const done = useDone(props);
  const { data } = useCall("cron.list", { params: { slug } });
  return (
    <Removal
      {...props}
      row="cron.delete"
      title="Delete a cron job"
      submit="Delete"
      label="Job"
      names={data?.jobs.map(({ name }) => name)}
      input={(name) => ({ params: { slug, name } })}
      text="The job and the record of its runs go."
      onDone={() => done("cron")}
    />
  );
}
