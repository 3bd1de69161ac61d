// Package canonical reads and writes JSON so that its bytes, and with them its
// hashes, are those of Python:
//
//	json.dumps(json.loads(text), ensure_ascii=False, allow_nan=False,
//	           separators=(",", ":")).encode()
//
// with the keys in the order of the text, or sorted by code point as
// sort_keys=True does.
//
// # Contract
//
// [Parse] takes one JSON text and keeps what those bytes depend on: the order of
// keys, integers of any size apart from floats, and how a number was spelled. An
// array of integers costs eight bytes each. [Value.Append], [Value.Write] and
// [Value.SHA256] give the canonical bytes: 1.50 becomes 1.5, 1E3 1000.0, -0 0, and
// 1e16 1e+16, as CPython's repr has it; nothing is escaped but quotes, backslashes
// and control characters.
//
// What Python refuses is refused: NaN and Infinity, a number above float64, an
// integer of more than 4,300 digits, half a surrogate pair, invalid UTF-8, a byte
// order mark, anything after the value, nesting that ends in its RecursionError
// ([MaxDepth]). Two equal keys in one object, of which Python takes the last, are
// refused by a rule of our own; [SyntaxError.Own] tells the two apart.
//
// # Limits and non-goals
//
// The whole text is in memory; [ReadFile] refuses a large one before reading it. The
// package binds no Go types: what the members of an object mean is its callers'
// business.
package canonical
