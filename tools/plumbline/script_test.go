package main

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/plumbline-go/plumbline/dumpfmt"
	"github.com/plumbline-go/plumbline/golden/kernel"
	"github.com/plumbline-go/plumbline/tools/suite"
)

func TestMain(m *testing.M) {
	if err := mayUpdate(os.Args[1:], os.Getenv("GOLDIE_UPDATE"), suite.Embedded); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	testscript.Main(m, map[string]func(){"plumbline": main, "adapter": adapter})
}

// TestScripts runs the command line end to end. Besides testscript's own
// commands the scripts have:
//
//	exits CODE plumbline ARGS…  run, and check the exit code
//	dumps DIR float|int8 NAME…  write a dump folder with a small case per name
//	cut FILE N                  keep the first N bytes
//	patch FILE OFFSET HEX       overwrite bytes
//	waiver FILE CHECK CASE      write a waiver that holds for a month
//	tensors DIR SHIFT [INV]     write the tensors of small.json, or INV, with values up to 2*SHIFT off
//
// $MODEL is the folder of the seeded checkpoint, which has no tokenizer, $TRAINED
// that of the trained one, which has, and $GOLDEN what transformers made of it.
// $HYBRID and $DEEPSEEK are those of the seeded Qwen3.5 and DeepSeek-V2. $TEACHER holds a plan with target and evidence
// of no model, $PLAN is one for $MODEL. $MOE is a small mixture of experts with a
// tokenizer, $BAREMOE the same one without.
func TestScripts(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("MODEL", filepath.Join(root, "fixtures", "qwen2-seeded"))
			env.Setenv("HYBRID", filepath.Join(root, "fixtures", "qwen3_5-seeded"))
			env.Setenv("DEEPSEEK", filepath.Join(root, "fixtures", "deepseek2-seeded"))
			env.Setenv("TRAINED", filepath.Join(root, "fixtures", "qwen2-trained"))
			env.Setenv("GOLDEN", filepath.Join(root, "golden", "qwen2-trained"))
			env.Setenv("TEACHER", filepath.Join(root, "golden", "teacher", "testdata", "case"))
			env.Setenv("PLAN", filepath.Join(root, "tools", "plumbline", "testdata", "targets", "summary.json"))
			env.Setenv(modelEnv, "")
			moe, bare := filepath.Join(env.WorkDir, ".moe"), filepath.Join(env.WorkDir, ".bare-moe")
			env.Setenv("MOE", moe)
			env.Setenv("BAREMOE", bare)
			return errors.Join(writeMoE(moe, true), writeMoE(bare, false))
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "dumps": dumps, "cut": cut, "patch": patch, "tensors": tensors, "waiver": waiver,
		},
	})
}

func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var e *exec.ExitError
		if !errors.As(err, &e) {
			ts.Fatalf("%v", err)
		}
		got = e.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

func waiver(ts *testscript.TestScript, _ bool, args []string) {
	month := time.Now().AddDate(0, 0, 30).Format(time.DateOnly)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), fmt.Appendf(nil, `{"waivers": [{"check": %q, "case": %q, "reason": "for a month", "expires": %q}]}`,
		args[1], args[2], month), 0o666))
}

func cut(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Check(os.Truncate(ts.MkAbs(args[0]), int64(n)))
}

func patch(ts *testscript.TestScript, _ bool, args []string) {
	off, err := strconv.Atoi(args[1])
	ts.Check(err)
	b, err := hex.DecodeString(args[2])
	ts.Check(err)
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_WRONLY, 0)
	ts.Check(err)
	_, err = f.WriteAt(b, int64(off))
	ts.Check(errors.Join(err, f.Close()))
}

func tensors(ts *testscript.TestScript, _ bool, args []string) {
	shift, err := strconv.ParseFloat(args[1], 64)
	ts.Check(err)
	inventory := "small.json"
	if len(args) > 2 {
		inventory = args[2]
	}
	if _, err := os.Stat(ts.MkAbs(inventory)); err == nil { // else it is built in
		inventory = ts.MkAbs(inventory)
	}
	ts.Check(writeTensorFolder(ts.MkAbs(args[0]), inventory, shift))
}

// writeTensorFolder writes raw files for an inventory: -2, -1, 0, 1, 2, …, and on
// that 0, shift and 2*shift in turn.
func writeTensorFolder(dir, inventory string, shift float64) error {
	inv, err := kernel.Load(inventory)
	if err != nil {
		return err
	}
	for n := range inv.Len() {
		k := inv.Key(n)
		heads, width := inv.Shape(k)
		var b []byte
		for i := range heads * width {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(i%5)-2+float32(shift)*float32(i%3)))
		}
		path := filepath.Join(dir, inv.FileOf(k))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, b, 0o666)); err != nil {
			return err
		}
	}
	return nil
}

func dumps(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(writeDumps(ts.MkAbs(args[0]), args[1], args[2:]))
}

// writeDumps writes cases of three rows of four channels: as float32 values, or
// as int8 codes that stand for nearly the same values times 1.5.
func writeDumps(dir, side string, names []string) error {
	values := [][]float32{{1, 2, 3, 4}, {2, 1, 4, 3}, {0.5, -1, 2, 8}}
	codes := [][]int8{{1, 2, 3, 5}, {3, 1, 3, 4}, {1, -1, 2, 6}}
	layers := map[string]string{"float": dumpfmt.LayersFloat32, "int8": dumpfmt.LayersInt8Scaled}[side]
	if layers == "" {
		return fmt.Errorf("side %q", side)
	}
	w, err := dumpfmt.CreateFolder(dir, dumpfmt.EngineFile{Name: side + " side", Layers: layers}, dumpfmt.WriteOptions{})
	if err != nil {
		return err
	}
	for _, name := range names {
		prompt := "about " + name
		c, err := w.Case(name, dumpfmt.CaseFile{Text: "<s>" + name, TokenIDs: []int{1, 2, 3}, Prompt: &prompt})
		if err != nil {
			return err
		}
		if side == "float" {
			d, err := c.FloatLayers(3, 4)
			for i := 0; err == nil && i < 3; i++ {
				err = d.WriteRow(values[i])
			}
			if err = errors.Join(err, d.Commit()); err != nil {
				return err
			}
		} else {
			d, err := c.Int8Layers(3, 4)
			for i := 0; err == nil && i < 3; i++ {
				err = d.WriteRow(dumpfmt.Scale{M: 3, E: -1}, codes[i])
			}
			if err = errors.Join(err, d.Commit()); err != nil {
				return err
			}
		}
		if err := c.Commit(); err != nil {
			return err
		}
	}
	return nil
}
