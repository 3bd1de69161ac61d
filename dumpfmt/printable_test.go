package dumpfmt

import "testing"

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"":                      "",
		"capital of France":     "capital of France",
		"naïve/日本語/\u3000.json": "naïve/日本語/\u3000.json",
		"a\nb":                  `"a\nb"`,
		"\x1b[31mred":           `"\x1b[31mred"`,
		"\u202egnp.exe":         `"\u202egnp.exe"`,
		"a\u2028b":              `"a\u2028b"`,
		"\xff":                  `"\xff"`,
		"\x7f\"":                `"\x7f\""`,
	} {
		if got := Printable(in); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

func TestCheckJSON(t *testing.T) {
	for _, text := range []string{`{}`, `{"a":{"a":1},"b":[{"a":1},{"a":1}]}`, ` null `, `1`} {
		if err := CheckJSON("x.json", []byte(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, want := range map[string]string{
		`{"a":1,"a":1}`:                    `dumpfmt: JSON x.json: the value at byte 0x7: got key "a" twice, want each key once`,
		`{"a":[{"b":{"c":1,"\u0063":2}}]}`: `dumpfmt: JSON x.json: b at byte 0x12: got key "c" twice, want each key once`,
		`{"a\n":{"c":1,"c":2}}`:            `dumpfmt: JSON x.json: "a\n" at byte 0xE: got key "c" twice, want each key once`,
		`{} {}`:                            `dumpfmt: JSON x.json: after the JSON value at byte 0x3: got '{', want the end`,
		``:                                 `dumpfmt: JSON x.json: the value at byte 0x0: got the end, want a number`,
	} {
		if err := CheckJSON("x.json", []byte(text)); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}
