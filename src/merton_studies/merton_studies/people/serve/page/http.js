// Requests to the API, with the token that stands in this page's address.

import { NotNow, Refused } from "./queue.js";

const LIMIT_MS = 20000;

export class Stranger extends Error {} // the token is not known, or not any more

export function token() {
  return decodeURIComponent(location.hash.slice(1));
}

export function setToken(value) {
  history.replaceState(null, "", `#${encodeURIComponent(value)}`);
}

async function ask(path, body) {
  const headers = token() ? { Authorization: `Bearer ${token()}` } : {};
  const options = { headers, cache: "no-store", signal: AbortSignal.timeout(LIMIT_MS) };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    Object.assign(options, { method: "POST", body: JSON.stringify(body) });
  }
  let reply;
  try {
    reply = await fetch(path, options);
  } catch {
    throw new NotNow("there is no connection to the server");
  }
  if (reply.ok) return reply;
  const detail = await reply.json().then((said) => String(said.detail), () => "");
  if (reply.status === 401) throw new Stranger(detail);
  if (reply.status >= 500 || reply.status === 408 || reply.status === 429) throw new NotNow(detail);
  throw new Refused(detail || `the server refused this (${reply.status})`);
}

async function received(promise) {
  try {
    return await promise;
  } catch (error) {
    throw error instanceof NotNow || error instanceof Refused || error instanceof Stranger ? error : new NotNow("the reply did not arrive");
  }
}

export const getJson = (path) => received(ask(path).then((reply) => reply.json()));
export const getBlob = (path) => received(ask(path).then((reply) => reply.blob()));
export const post = (path, body) => received(ask(path, body).then((reply) => reply.json()));
