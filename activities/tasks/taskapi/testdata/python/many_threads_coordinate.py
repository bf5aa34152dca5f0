def work(n):
    try:
        for i in range(50):
            c.schedule("add", (1,))
            assert c.schedule("same", ([n, i],)).fetch() == [n, i]
            if i % 20 == 0:
                c.join()
            c.done()
    except BaseException as e:
        print(repr(e), file=sys.stderr)
        os._exit(1)
threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
for t in threads: t.start()
for t in threads: t.join()
c.join()
