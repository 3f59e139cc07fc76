import { useAction } from "../../data/api.ts";
import { useWhyNot } from "../../data/me.ts";
import type { Project } from "../../data/project.ts";
import { textOf } from "../../data/text-of.ts";
import { TextField } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { Section } from "../../ui/page.tsx";
import { Plain } from "../../ui/text.tsx";

/** Switches the maintenance page on and off, which visitors get instead of the application. */
export function Maintenance({ project: { slug, maintenance } }: { readonly project: Project }) {
  const change = useAction("projects.maintenance");
  const isOn = maintenance !== null;
  const submit = (form: FormData) => {
    const message = textOf(form, "message").trim() || null;
    change.mutate({ params: { slug }, body: isOn ? { on: false } : { on: true, message } });
  };
  return (
    <Section
      title="Maintenance"
      lead="Visitors get a page with status 503. The application, deployments and cron jobs go on behind it."
    >
      <Form
        submit={isOn ? "Let visitors in again" : "Show the maintenance page"}
        look="plain"
        busy={change.isPending}
        error={change.error}
        why={useWhyNot("projects.maintenance")}
        className="max-w-4xl"
        onSubmit={submit}
      >
        {isOn ? (
          <p>
            Visitors get the maintenance page
            {maintenance.message === null ? (
              "."
            ) : (
              <>
                : <Plain>{maintenance.message}</Plain>
              </>
            )}
          </p>
        ) : (
          <TextField
            name="message"
            label="Text of the page"
            hint="One line. Empty: the application is down for maintenance."
            maxLength={300}
            placeholder="Back at 18:00 UTC"
          />
        )}
      </Form>
    </Section>
  );
}
