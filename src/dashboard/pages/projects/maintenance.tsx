import { type FormEvent } from "react";
import { useAction } from "../../data/api.ts";
import { useWhyNot } from "../../data/me.ts";
import type { Project } from "../../data/project.ts";
import { textOf } from "../../data/text-of.ts";
import { Button } from "../../ui/button.tsx";
import { Field, Input } from "../../ui/field.tsx";
import { Section } from "../../ui/page.tsx";
import { fieldProblem, Problem } from "../../ui/problem.tsx";

/** Switches the page that visitors get instead of the application. */
export function Maintenance({ project: { slug, maintenance } }: { readonly project: Project }) {
  const change = useAction("projects.maintenance");
  const why = useWhyNot("projects.maintenance");
  const isOn = maintenance !== null;
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (change.isPending || why !== undefined) return;
    const message = textOf(new FormData(event.currentTarget), "message").trim() || null;
    change.mutate({ params: { slug }, body: isOn ? { on: false } : { on: true, message } });
  };
  return (
    <Section
      title="Maintenance"
      lead="Visitors get a page with status 503. The application, deployments and cron jobs go on behind it."
    >
      <form onSubmit={submit} className="flex max-w-4xl flex-col gap-4">
        {isOn ? (
          <p>Visitors get the maintenance page{maintenance.message === null ? "." : `: ${maintenance.message}`}</p>
        ) : (
          <Field
            label="Text of the page"
            hint="One line. Empty: the application is down for maintenance."
            error={fieldProblem(change.error, "message")}
          >
            {(ids) => <Input {...ids} name="message" maxLength={300} placeholder="Back at 18:00 UTC" />}
          </Field>
        )}
        {change.error !== null && <Problem error={change.error} />}
        <div>
          <Button type="submit" busy={change.isPending} why={why}>
            {isOn ? "Let visitors in again" : "Show the maintenance page"}
          </Button>
        </div>
      </form>
    </Section>
  );
}
