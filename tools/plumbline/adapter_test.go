package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// adapter is a program for the scripts that answers the two fakes, by what the help
// says of them, and is wrong in the way that its first argument names:
//
//	adapter MODE {ids} {text_file} {dir}    per case
//	adapter MODE                            with --protocol
func adapter() {
	if err := adapt(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "adapter:", err)
		os.Exit(1)
	}
}

func adapt(mode string, args []string) error {
	if len(args) == 0 {
		return adaptLines(mode)
	}
	var ids []int
	for _, w := range strings.Split(args[0], ",") {
		id, err := strconv.Atoi(w)
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	text, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(args[2], "engine.json"), []byte(`{"name":"adapter","layers":"f32","logits":"f32"}`), 0o666); err != nil {
		return err
	}
	return adaptCase(mode, ids, string(text), filepath.Join(args[2], "case.layers.bin"), filepath.Join(args[2], "case.logits.bin"))
}

// kept is the first prompt that was asked, for the mode that never looks at another.
var kept []int

func adaptLines(mode string) error {
	in := bufio.NewReader(os.Stdin)
	for n := 0; ; n++ {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var req struct {
			Case, Text string
			TokenIDs   []int `json:"token_ids"`
			Out        struct{ Layers, Logits string }
		}
		if err := json.Unmarshal(line, &req); err != nil {
			return err
		}
		reply := `{"ok":true}`
		switch {
		case n == 0 && mode == "f16":
			reply = `{"plumbline":1,"name":"adapter","layers":"f16"}`
		case n == 0 && mode == "no smoke":
			reply = `{"plumbline":1,"name":"adapter","layers":"f32","logits":"f32"}`
		case n == 0:
			reply = `{"plumbline":1,"name":"adapter","version":"7","layers":"f32","logits":"f32","features":["paged-kv"],"probes":["embed"],"smoke":true}`
		case mode == "string":
			reply = `{"ok":"true"}`
		case mode == "chatty":
			reply = "loaded 3 shards\n" + reply
		case mode == "twice":
			reply += "\n" + reply
		case mode == "late":
			time.Sleep(time.Hour)
		case mode == "crash":
			fmt.Fprintln(os.Stderr, "out of memory")
			os.Exit(9)
		case mode == "garbage":
			reply = `{"ok":true,}`
		case mode == "other case":
			reply = fmt.Sprintf(`{"ok":true,"case":%q}`, req.Case+"2")
		}
		if n > 0 {
			if err := adaptCase(mode, req.TokenIDs, req.Text, req.Out.Layers, req.Out.Logits); err != nil {
				return err
			}
		}
		fmt.Println(reply)
	}
}

func adaptCase(mode string, ids []int, text, layers, logits string) error {
	plus := 0
	if ids[0] == 5 {
		plus = 1
	}
	switch mode {
	case "always right":
		plus = 0
	case "always wrong":
		plus = 1
	case "last answer":
		if kept == nil {
			kept = slices.Clone(ids)
		}
		ids, plus = kept, 0
	}
	up := make([]float32, len(ids))
	down := make([]float32, len(ids))
	for i, id := range ids {
		up[i], down[i] = float32(id+plus), float32(plus-id)
	}
	hash := fnv.New64a()
	io.WriteString(hash, text)
	fingerprint := hash.Sum64()
	switch mode {
	case "swapped rows":
		up, down = down, up
	case "one value":
		down[2] += 7
	case "no fingerprint":
		fingerprint = 0
	case "swapped files":
		layers, logits = logits, layers
	}
	head := binary.LittleEndian.AppendUint64
	rows := head(head(head(head(nil, 2), uint64(len(ids))), fingerprint), 1)
	last := head(head(nil, 1), uint64(len(ids)))
	for _, x := range up {
		rows = binary.LittleEndian.AppendUint32(rows, math.Float32bits(x))
		last = binary.LittleEndian.AppendUint32(last, math.Float32bits(float32(math.Abs(float64(x)))))
	}
	for _, x := range down {
		rows = binary.LittleEndian.AppendUint32(rows, math.Float32bits(x))
	}
	if mode == "half" {
		rows = rows[:len(rows)-6]
	}
	if err := os.WriteFile(layers, rows, 0o666); err != nil || mode == "no logits" {
		return err
	}
	return os.WriteFile(logits, last, 0o666)
}
