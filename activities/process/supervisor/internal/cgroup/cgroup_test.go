package cgroup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/clusterrun/clusterrun/activities/system/runkey"
	"github.com/clusterrun/clusterrun/tests/must"
)

// controllers holds the results of Delegate.
type controllers struct {
	there []string
	why   string
}

func controllersOf(there []string, why error) controllers {
	c := controllers{there: there}
	if why != nil {
		c.why = why.Error()
	}
	return c
}

func delegated(instance string) controllers {
	there, why := Delegate(instance, 42)
	return controllersOf(there, why)
}

// tree makes a directory for each path and writes the files in it. They stand for cgroup files,
// because the test machine may lack version 2 cgroups with controllers.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	}
	return root
}

func TestPlace(t *testing.T) {
	for self, want := range map[string]struct {
		path   string
		ofTask bool
	}{
		"":       {},
		"0::/\n": {},
		"1:cpu:/a\n0::/user.slice/session-3.scope\n": {"user.slice/session-3.scope", false},
		"0::/clusterrun-supervisor\n":                {"clusterrun-supervisor", false},
		"0::/a/clusterrun-iswyfsft/worker-0.1/b\n":   {"a/clusterrun-iswyfsft/worker-0.1/b", true},
	} {
		path, ofTask := placeIn([]byte(self))
		assert.Equal(t, want.path, path, self)
		assert.Equal(t, want.ofTask, ofTask, self)
	}
}

func TestControllersAreHandedDown(t *testing.T) {
	root := tree(t, map[string]string{
		"cgroup.controllers": "cpuset cpu io memory hugetlb pids rdma\n", "cgroup.subtree_control": "", "cgroup.procs": "",
		"clusterrun-x/cgroup.subtree_control": "",
	})
	assert.Equal(t, controllers{there: []string{"cpu", "memory", "pids"}}, delegated(filepath.Join(root, "clusterrun-x")))
	assert.Equal(t, "+cpu +memory +pids", must.Read(t, root, "cgroup.subtree_control"))
	assert.Equal(t, "+cpu +memory +pids", must.Read(t, root, "clusterrun-x/cgroup.subtree_control"))

	for name, c := range map[string]struct {
		files map[string]string
		want  controllers
	}{
		"none": {map[string]string{"cgroup.controllers": "hugetlb\n"}, controllers{
			why: "there are no cgroup v2 controllers cpu, memory, pids; boot with systemd.unified_cgroup_hierarchy=1, or run the host worker with Delegate=yes",
		}},
		"some": {map[string]string{"cgroup.controllers": "memory pids", "cgroup.subtree_control": "", "clusterrun-x/cgroup.subtree_control": ""}, controllers{
			there: []string{"memory", "pids"}, why: "the host worker's cgroup has only the controllers memory and pids",
		}},
		"not ours": {map[string]string{"cgroup.controllers": "memory", "clusterrun-x/cgroup.subtree_control": ""}, controllers{
			why: "its cgroup does not delegate controllers (no such file or directory); start the host worker as a service with Delegate=yes",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, delegated(filepath.Join(tree(t, c.files), "clusterrun-x")))
		})
	}
	assert.NotEmpty(t, delegated("").why)
}

func TestProspect(t *testing.T) {
	all := []string{"cpu", "memory", "pids"}
	for name, c := range map[string]struct {
		files map[string]string
		want  controllers
	}{
		"handed down already": {map[string]string{"cgroup.controllers": "cpu io memory pids", "cgroup.subtree_control": "cpu memory pids", "cgroup.type": "domain"}, controllers{there: all}},
		"the root":            {map[string]string{"cgroup.controllers": "cpu memory pids", "cgroup.subtree_control": ""}, controllers{there: all}},
		"shared":              {map[string]string{"cgroup.controllers": "cpu memory pids", "cgroup.subtree_control": "", "cgroup.type": "domain"}, controllers{why: errSharedCgroup.Error()}},
		"none":                {map[string]string{"cgroup.controllers": "hugetlb"}, controllers{why: errNoController.Error()}},
		"some":                {map[string]string{"cgroup.controllers": "memory pids"}, controllers{there: []string{"memory", "pids"}, why: "the host worker's cgroup has only the controllers memory and pids"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := tree(t, c.files)
			there, why := prospect(dir)
			assert.Equal(t, c.want, controllersOf(there, why))
			if was, ok := c.files["cgroup.subtree_control"]; ok {
				assert.Equal(t, was, must.Read(t, dir, "cgroup.subtree_control"), "nothing is changed")
			}
		})
	}
	_, why := prospect("")
	assert.Equal(t, errNoCgroupV2, why)
}

func TestFindCgroup(t *testing.T) {
	hybrid := "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n41 31 0:38 / /sys/fs/cgroup/unified rw,relatime shared:9 - cgroup2 cgroup2 rw\n"
	unified := "29 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	for _, c := range []struct{ self, mounts, want string }{
		{"4:memory:/x\n0::/\n", hybrid, "/sys/fs/cgroup/unified"},
		{"0::/user.slice/a.service\n", unified, "/sys/fs/cgroup/user.slice/a.service"},
		{"0::/../../b\n", unified, ""}, // of an outer namespace
		{"4:memory:/x\n", hybrid, ""},
		{"0::/a\n", "1 2 0:1 / / rw - ext4 /dev/vda rw\n", ""},
		{"0::/docker/abc/x\n", "29 23 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "/sys/fs/cgroup/x"},
		{"0::/x\n", "29 23 0:26 / /mnt/c\\040g rw - cgroup2 cgroup2 rw\n", "/mnt/c g/x"},
	} {
		require.Equal(t, c.want, find([]byte(c.self), []byte(c.mounts), ""), c.self)
	}
}

// The kernel counts OOM kills in files with similar lines.
func TestOOMCounter(t *testing.T) {
	root := tree(t, map[string]string{
		"two/a/memory.events":      "oom 3\noom_kill 2\noom_group_kill 0\n",
		"two/a/b/cgroup.procs":     "1\n",
		"one/x/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
		"old/x/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\n",
		"vmstat":                   "nr_free_pages 12\noom_kill 4\n",
	})
	two := "41 31 0:38 / " + root + "/two rw - cgroup2 cgroup2 rw\n"
	one := "42 31 0:39 / " + root + "/one rw - cgroup cgroup rw,memory\n"
	old := "42 31 0:39 / " + root + "/old rw - cgroup cgroup rw,memory,blkio\n"
	vmstat := filepath.Join(root, "vmstat")
	for name, c := range map[string]struct {
		self, mounts, host, scope string
		want                      int
	}{
		"version 2":             {"0::/a\n", two, vmstat, "cgroup", 2},
		"the cgroup above":      {"0::/a/b\n", two, vmstat, "cgroup", 2},
		"version 1":             {"4:memory:/x\n0::/\n", two + one, vmstat, "cgroup", 3},
		"several controllers":   {"4:memory,blkio:/x\n", old, vmstat, "host", 4},
		"no cgroups":            {"", "", vmstat, "host", 4},
		"nothing counts at all": {"4:memory:/x\n", old, root, "", 0},
	} {
		got := ownOOM([]byte(c.self), []byte(c.mounts), c.host)
		assert.Equal(t, c.scope, got.Scope, name)
		assert.Equal(t, c.want, got.Count(), name)
	}
}

func TestCgroupNames(t *testing.T) {
	long := strings.Repeat("x", 64)
	names := make(map[string]bool)
	for _, task := range []string{"worker-0", "worker-0-0", long, long + "a", long + "b", "é", "a:b", "a_b"} {
		for number := range 2 {
			name := Name("h", runkey.Task{Task: task}, number)
			require.False(t, names[name], name)
			require.Regexp(t, `^[A-Za-z0-9._+-]{1,200}$`, name)
			names[name] = true
		}
	}
}
