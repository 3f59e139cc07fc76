import { revalidatePath } from "next/cache";
import { database } from "./database.js";

// The page is made for each request, because it shows the database.
export const dynamic = "force-dynamic";

async function add(form) {
  "use server";
  const text = String(form.get("text") ?? "").slice(0, 500);
  if (text !== "") await database.query("insert into note (text) values ($1)", [text]);
  revalidatePath("/");
}

export default async function Page() {
  const { rows } = await database.query("select id, text from note order by id desc limit 50");
  return (
    <main>
      <h1>Notes</h1>
      <form action={add}>
        <input name="text" required maxLength={500} aria-label="Note" /> <button>Add</button>
      </form>
      <ul>
        {rows.map(({ id, text }) => (
          <li key={id}>{text}</li>
        ))}
      </ul>
    </main>
  );
}
