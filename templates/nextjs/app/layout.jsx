export const metadata = { title: "Notes" };

export default function Layout({ children }) {
  return (
    <html lang="en">
      <body style={{ maxWidth: "40rem", margin: "15vh auto", padding: "0 1rem", fontFamily: "system-ui, sans-serif" }}>
        {children}
      </body>
    </html>
  );
}
