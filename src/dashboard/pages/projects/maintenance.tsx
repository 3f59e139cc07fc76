import { useAction, useWhyNot, type Project } from "../../data/api.ts";
import { useDialog } from "../../ui/dialogs.tsx";
import { textOf, TextField } from "../../ui/field.tsx";
import { Form } from "../../ui/form.tsx";
import { Section } from "../../ui/page.tsx";
import { Plain } from "../../ui/text.tsx";

export const maintenanceLead =
  "Visitors see a page titled “Down for maintenance”, with your text and status 503, instead of the application. Deployments and cron jobs go on behind it.";

export function Maintenance({ project }: { readonly project: Project }) {
  return (
    <Section title="Maintenance" lead={maintenanceLead}>
      <MaintenanceForm project={project} />
    </Section>
  );
}

/** Switches the maintenance page on and off, which visitors get instead of the application. */
export function MaintenanceForm({ project: { slug, maintenance } }: { readonly project: Project }) {
  const change = useAction("projects.maintenance");
  const { finish } = useDialog();
  const isOn = maintenance !== null;
  const submit = (form: FormData) => {
    const message = textOf(form, "message").trim() || null;
    return change.mutateAsync({ params: { slug }, body: isOn ? { on: false } : { on: true, message } }).then(finish);
  };
  return (
    <Form
      submit={isOn ? "Let visitors in again" : "Show visitors the maintenance page"}
      look="plain"
      why={useWhyNot("projects.maintenance")}
      className="max-w-4xl"
      onSubmit={submit}
    >
      {isOn ? (
        <p>
          Visitors see “Down for maintenance” instead of the application
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
          label="Text below the title"
          hint="One line. If empty: “This application is down for maintenance. Try again in a few minutes.”"
          maxLength={300}
          placeholder="Back at 18:00 UTC"
        />
      )}
    </Form>
  );
}
