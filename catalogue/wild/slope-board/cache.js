'use strict';

/** Values by key, loaded when they are missing or older than ttlMs. */
class TtlCache {
  constructor(load, ttlMs) {
    this.load = load;
    this.ttlMs = ttlMs;
    this.entries = new Map();
  }

  async get(key) {
    const entry = this.entries.get(key);
    if (entry && entry.expires > Date.now()) return entry.value;
    const fresh = await this.load(key);
    this.entries.set(key, { value: fresh, expires: Date.now() + this.ttlMs });
    return fresh;
  }
}

/** As TtlCache, with one load per key at a time; an expired value is good enough until it is done. */
class RefreshingCache extends TtlCache {
  constructor(load, ttlMs) {
    super(load, ttlMs);
    this.loading = new Map();
  }

  async get(key) {
    const entry = this.entries.get(key);
    if (entry && entry.expires > Date.now()) return entry.value;
    let refresh = this.loading.get(key);
    if (!refresh) {
      refresh = super.get(key).finally(() => this.loading.delete(key));
      this.loading.set(key, refresh);
    }
    if (!entry) return refresh;
    refresh.catch((error) => console.error(`refresh of ${key}: ${error.message}`));
    return entry.value;
  }
}

module.exports = { TtlCache, RefreshingCache };
